#define _GNU_SOURCE 1

#include "system.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *text_of(const char *format, va_list arguments)
{
    char path[4096] = "";
    int length = snprintf(path, sizeof path, "%s", ASSAY_SYSTEM_ROOT);
    vsnprintf(path + length, sizeof path - length, format, arguments);
    FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    char *text = NULL;
    size_t size = 0;
    /* These files hold no zero bytes, so this reads all. */
    if (getdelim(&text, &size, '\0', file) < 0) {
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

char *system_text(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = text_of(format, arguments);
    va_end(arguments);
    return text;
}

char *system_trimmed(char *text)
{
    text += strspn(text, " \t\r\n");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]))
        length--;
    text[length] = '\0';
    return text;
}

bool system_number(uint64_t *number, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = text_of(format, arguments);
    va_end(arguments);
    bool found = text && *text >= '0' && *text <= '9';
    if (found)
        *number = strtoull(text, NULL, 10);
    free(text);
    return found;
}

struct set system_set(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = text_of(format, arguments);
    va_end(arguments);
    struct set set = { { 0 } };
    const char *rest = text ? text : "";
    int first, last, length;
    while (sscanf(rest, "%d%n", &first, &length) == 1) {
        rest += length;
        last = first;
        if (sscanf(rest, "-%d%n", &last, &length) == 1)
            rest += length;
        for (int member = first; member <= last && member < SET_MEMBERS; member++)
            set_add(&set, member);
        rest += *rest == ',';
    }
    free(text);
    return set;
}

glob_t system_paths(const char *pattern)
{
    char path[4096];
    snprintf(path, sizeof path, "%s%s", ASSAY_SYSTEM_ROOT, pattern);
    glob_t paths = { 0 };
    if (glob(path, GLOB_NOSORT, NULL, &paths) != 0)
        paths.gl_pathc = 0;
    return paths;
}

const char *system_path(const glob_t *paths, size_t index)
{
    return paths->gl_pathv[index] + strlen(ASSAY_SYSTEM_ROOT);
}

int system_path_number(const char *path)
{
    return atoi(strrchr(path, '/') + 1);
}

void set_add(struct set *set, int member)
{
    if (member >= 0 && member < SET_MEMBERS)
        set->words[member / SET_WORD] |= 1UL << member % SET_WORD;
}

void set_remove(struct set *set, int member)
{
    if (member >= 0 && member < SET_MEMBERS)
        set->words[member / SET_WORD] &= ~(1UL << member % SET_WORD);
}

bool set_has(const struct set *set, int member)
{
    return member >= 0 && member < SET_MEMBERS &&
           set->words[member / SET_WORD] >> member % SET_WORD & 1;
}

int set_next(const struct set *set, int from)
{
    for (int member = from; member < SET_MEMBERS; member++) {
        unsigned long rest = set->words[member / SET_WORD] >> member % SET_WORD;
        if (rest & 1)
            return member;
        if (!rest)
            member |= SET_WORD - 1; /* the last of this word */
    }
    return -1;
}

struct set set_both(const struct set *a, const struct set *b)
{
    struct set both;
    for (int word = 0; word < SET_MEMBERS / SET_WORD; word++)
        both.words[word] = a->words[word] & b->words[word];
    return both;
}

void set_write(struct json *json, const char *key, const struct set *set)
{
    char *text = NULL;
    size_t size;
    FILE *list = open_memstream(&text, &size);
    if (!list)
        return;
    for (int first = set_next(set, 0), last; first >= 0; first = set_next(set, last + 1)) {
        for (last = first; set_has(set, last + 1); last++)
            ;
        fprintf(list, "%s%d", ftell(list) > 0 ? "," : "", first);
        if (last > first)
            fprintf(list, "-%d", last);
    }
    fclose(list);
    json_string(json, key, text ? text : "");
    free(text);
}
