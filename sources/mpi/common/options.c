#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

enum { MOST_OPTIONS = 32, HELP_COLUMN = 24, HELP_WIDTH = 72 };

/* clang-format off */
static const struct option_spec common_options[] = {
    { .name = "json", .argument = "FILE",
      .help = "write the results to FILE too; it appears when they are complete" },
    { .name = "help", .help = "print this text and leave" },
    { .name = "version", .help = "print the version and leave" },
    { .name = NULL },
};
/* clang-format on */

/* Values as text, as they would be typed ------------------------------------------------------ */

static void size_text(size_t bytes, char *text, size_t length)
{
    static const char suffixes[] = { 'G', 'M', 'K' };
    for (int i = 0; i < 3; i++) {
        size_t unit = (size_t)1 << (30 - 10 * i);
        if (bytes && bytes % unit == 0) {
            snprintf(text, length, "%zu%c", bytes / unit, suffixes[i]);
            return;
        }
    }
    snprintf(text, length, "%zu", bytes);
}

static void choices_text(const struct option_spec *spec, char *text, size_t length)
{
    unsigned chosen = *(const unsigned *)spec->value;
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; spec->choices[i] && used < length; i++)
        if (chosen & 1u << i)
            used += (size_t)snprintf(text + used, length - used, "%s%s", used ? "," : "",
                                     spec->choices[i]);
}

static void numbers_text(const struct option_spec *spec, char *text, size_t length)
{
    const struct option_numbers *numbers = spec->value;
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < numbers->count && used < length; i++)
        used += (size_t)snprintf(text + used, length - used, "%s%.15g", used ? "," : "",
                                 numbers->values[i]);
}

static void value_text(const struct option_spec *spec, char *text, size_t length)
{
    switch (spec->kind) {
    case OPTION_FLAG:
        snprintf(text, length, "%s", *(const bool *)spec->value ? "yes" : "no");
        break;
    case OPTION_COUNT:
        snprintf(text, length, "%ld", *(const long *)spec->value);
        break;
    case OPTION_SIZE:
        size_text(*(const size_t *)spec->value, text, length);
        break;
    case OPTION_NUMBER:
        snprintf(text, length, "%g", *(const double *)spec->value);
        break;
    case OPTION_NUMBERS:
        numbers_text(spec, text, length);
        break;
    case OPTION_CHOICE:
        snprintf(text, length, "%s", spec->choices[*(const int *)spec->value]);
        break;
    case OPTION_CHOICES:
        choices_text(spec, text, length);
        break;
    }
}

/* Text as values: each returns false when the text is not such a value ------------------------- */

static bool read_numbers(const struct option_spec *spec, const char *text)
{
    struct option_numbers numbers = { .count = 0 };
    for (;;) {
        char one[32];
        size_t length = strcspn(text, ",");
        snprintf(one, sizeof one, "%.*s", (int)length, text);
        if (length >= sizeof one || numbers.count == OPTION_MOST_NUMBERS)
            return false;
        double *number = &numbers.values[numbers.count++];
        if (!read_number(one, number) || *number < spec->low || *number > spec->high)
            return false;
        if (text[length] == '\0')
            break;
        text += length + 1;
    }
    *(struct option_numbers *)spec->value = numbers;
    return true;
}

static bool read_size(const char *text, size_t *bytes)
{
    if (text[0] < '0' || text[0] > '9')
        return false;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno)
        return false;
    int shift = 0;
    switch (*end) {
    case 'K':
    case 'k':
        shift = 10;
        end++;
        break;
    case 'M':
    case 'm':
        shift = 20;
        end++;
        break;
    case 'G':
    case 'g':
        shift = 30;
        end++;
        break;
    }
    if (*end || number > SIZE_MAX >> shift)
        return false;
    *bytes = (size_t)number << shift;
    return true;
}

static int find_choice(const char *const *choices, const char *text, size_t length)
{
    for (int i = 0; choices[i]; i++)
        if (strlen(choices[i]) == length && strncmp(choices[i], text, length) == 0)
            return i;
    return -1;
}

static bool read_choices(const char *const *choices, const char *text, unsigned *chosen)
{
    *chosen = 0;
    for (;;) {
        size_t length = strcspn(text, ",");
        int choice = find_choice(choices, text, length);
        if (choice < 0)
            return false;
        *chosen |= 1u << choice;
        if (text[length] == '\0')
            return true;
        text += length + 1;
    }
}

/* Parsing -------------------------------------------------------------------------------------- */

/* What the option takes, for the sentence about a wrong value. */
static void expectation(const struct option_spec *spec, char *text, size_t length)
{
    if (spec->kind == OPTION_CHOICE || spec->kind == OPTION_CHOICES) {
        size_t used = (size_t)snprintf(text, length, "%s",
                                       spec->kind == OPTION_CHOICE ? "one of" : "a list out of");
        for (int i = 0; spec->choices[i] && used < length; i++)
            used += (size_t)snprintf(text + used, length - used, "%s %s", i ? "," : "",
                                     spec->choices[i]);
    } else if (spec->kind == OPTION_SIZE) {
        char low[32], high[32];
        size_text((size_t)spec->low, low, sizeof low);
        size_text((size_t)spec->high, high, sizeof high);
        snprintf(text, length, "bytes (suffixes K, M, G) from %s to %s", low, high);
    } else if (spec->kind == OPTION_NUMBERS) {
        snprintf(text, length, "at most %d numbers from %g to %g, separated by commas",
                 OPTION_MOST_NUMBERS, spec->low, spec->high);
    } else {
        snprintf(text, length, "a %snumber from %g to %g",
                 spec->kind == OPTION_COUNT ? "whole " : "", spec->low, spec->high);
    }
}

static bool read_value(const struct option_spec *spec, const char *text)
{
    switch (spec->kind) {
    case OPTION_FLAG:
        *(bool *)spec->value = true;
        return true;
    case OPTION_COUNT: {
        long count;
        if (!read_whole(text, LONG_MIN, LONG_MAX, &count) || count < spec->low ||
            count > spec->high)
            return false;
        *(long *)spec->value = count;
        return true;
    }
    case OPTION_SIZE: {
        size_t bytes;
        if (!read_size(text, &bytes) || (double)bytes < spec->low || (double)bytes > spec->high)
            return false;
        *(size_t *)spec->value = bytes;
        return true;
    }
    case OPTION_NUMBER: {
        double number;
        if (!read_number(text, &number) || number < spec->low || number > spec->high)
            return false;
        *(double *)spec->value = number;
        return true;
    }
    case OPTION_NUMBERS:
        return read_numbers(spec, text);
    case OPTION_CHOICE: {
        int choice = find_choice(spec->choices, text, strlen(text));
        if (choice < 0)
            return false;
        *(int *)spec->value = choice;
        return true;
    }
    case OPTION_CHOICES: {
        unsigned chosen;
        if (!read_choices(spec->choices, text, &chosen))
            return false;
        *(unsigned *)spec->value = chosen;
        return true;
    }
    }
    return false;
}

enum option_outcome options_parse(int argc, char **argv, const struct option_spec *table,
                                  const char **json_path, char *problem, size_t length)
{
    enum { JSON = MOST_OPTIONS, HELP, VERSION };
    struct option longs[MOST_OPTIONS + 4] = { 0 };
    int count = 0;
    for (; table[count].name; count++)
        longs[count] =
            (struct option){ table[count].name,
                             table[count].kind == OPTION_FLAG ? no_argument : required_argument,
                             NULL, count };
    longs[count] = (struct option){ "json", required_argument, NULL, JSON };
    longs[count + 1] = (struct option){ "help", no_argument, NULL, HELP };
    longs[count + 2] = (struct option){ "version", no_argument, NULL, VERSION };

    *json_path = NULL;
    opterr = 0;
    int found;
    while ((found = getopt_long(argc, argv, ":", longs, NULL)) != -1) {
        const char *typed = argv[optind - 1];
        if (found == HELP)
            return OPTIONS_HELP;
        if (found == VERSION)
            return OPTIONS_VERSION;
        if (found == ':') {
            snprintf(problem, length, "option %s needs a value", typed);
            return OPTIONS_WRONG;
        }
        if (found == '?') {
            snprintf(problem, length, "unknown option, or a value where none belongs: %s", typed);
            return OPTIONS_WRONG;
        }
        if (found == JSON) {
            *json_path = optarg;
        } else if (!read_value(&table[found], optarg)) {
            char expected[256];
            expectation(&table[found], expected, sizeof expected);
            snprintf(problem, length, "--%s %s is wrong: it takes %s", table[found].name, optarg,
                     expected);
            return OPTIONS_WRONG;
        }
    }
    if (optind < argc) {
        snprintf(problem, length, "argument %s is not an option", argv[optind]);
        return OPTIONS_WRONG;
    }
    return OPTIONS_RUN;
}

/* Reports -------------------------------------------------------------------------------------- */

/* Prints words from the help column on, broken between words. */
static void print_wrapped(const char *text, int column)
{
    while (*text) {
        size_t word = strcspn(text, " ");
        if (column > HELP_COLUMN && column + 1 + (int)word > HELP_COLUMN + HELP_WIDTH) {
            printf("\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        }
        column += printf("%s%.*s", column > HELP_COLUMN ? " " : "", (int)word, text);
        text += word;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void help_line(const struct option_spec *spec, const char *text)
{
    int column = printf("  --%s%s%s", spec->name, spec->argument ? " " : "",
                        spec->argument ? spec->argument : "");
    if (column >= HELP_COLUMN) {
        putchar('\n');
        column = 0;
    }
    printf("%*s", HELP_COLUMN - column, "");
    print_wrapped(text, HELP_COLUMN);
}

void options_help(const struct option_spec *table)
{
    for (const struct option_spec *spec = table; spec->name; spec++) {
        char text[1024], value[256], expected[256];
        value_text(spec, value, sizeof value);
        expectation(spec, expected, sizeof expected);
        if (spec->kind == OPTION_FLAG || !*value) /* an empty list cannot be typed */
            snprintf(text, sizeof text, "%s", spec->help);
        else if (spec->choices)
            snprintf(text, sizeof text, "%s; %s (default %s)", spec->help, expected, value);
        else
            snprintf(text, sizeof text, "%s (default %s)", spec->help, value);
        help_line(spec, text);
    }
    for (const struct option_spec *spec = common_options; spec->name; spec++)
        help_line(spec, spec->help);
}

void options_json(struct json *json, const char *key, const struct option_spec *table)
{
    json_object(json, key);
    for (const struct option_spec *spec = table; spec->name; spec++) {
        char name[64];
        snprintf(name, sizeof name, "%s", spec->name);
        for (char *dash = name; (dash = strchr(dash, '-'));)
            *dash = '_';
        switch (spec->kind) {
        case OPTION_FLAG:
            json_boolean(json, name, *(const bool *)spec->value);
            break;
        case OPTION_COUNT:
            json_integer(json, name, *(const long *)spec->value);
            break;
        case OPTION_SIZE:
            json_integer(json, name, (long long)*(const size_t *)spec->value);
            break;
        case OPTION_NUMBER:
            json_number(json, name, *(const double *)spec->value);
            break;
        case OPTION_NUMBERS: {
            const struct option_numbers *numbers = spec->value;
            json_array(json, name);
            for (int i = 0; i < numbers->count; i++)
                json_number(json, NULL, numbers->values[i]);
            json_end(json);
            break;
        }
        case OPTION_CHOICE:
            json_string(json, name, spec->choices[*(const int *)spec->value]);
            break;
        case OPTION_CHOICES:
            json_array(json, name);
            for (int i = 0; spec->choices[i]; i++)
                if (*(const unsigned *)spec->value & 1u << i)
                    json_string(json, NULL, spec->choices[i]);
            json_end(json);
            break;
        }
    }
    json_end(json);
}

void options_print(const struct option_spec *table)
{
    for (const struct option_spec *spec = table; spec->name; spec++) {
        char value[256];
        value_text(spec, value, sizeof value);
        if (spec->kind == OPTION_FLAG) {
            if (*(const bool *)spec->value)
                printf(" --%s", spec->name);
        } else if (*value) {
            printf(" --%s %s", spec->name, value);
        }
    }
    putchar('\n');
}
