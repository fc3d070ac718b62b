#include "json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEEPEST = 16, LINES_DOWN_TO = 2 };

struct json {
    FILE *file;
    char *path, *unfinished; /* of a file */
    char *text; /* of a writer in memory; open_memstream owns both until it is closed */
    size_t size;
    const char *not_finite;
    int depth, lines_down_to;
    char closing[DEEPEST];
    bool first;
};

/* In a file, containers down to LINES_DOWN_TO put each entry on a line of its own; deeper ones, and
 * all of a text in memory, stay on one. */
static void new_line(struct json *json)
{
    if (json->depth <= json->lines_down_to)
        fprintf(json->file, "\n%*s", 2 * json->depth, "");
    else if (!json->first)
        fputc(' ', json->file);
}

/* Bytes of the character of UTF-8 at c; 0 where none begins. */
static int utf8_length(const unsigned char *c)
{
    if (*c < 0x80)
        return 1;
    int length = *c >= 0xf0 ? 4 : *c >= 0xe0 ? 3 : 2;
    if (*c < 0xc2 || *c > 0xf4)
        return 0;
    for (int i = 1; i < length; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    /* The shorter form of another character, half of a pair of UTF-16, beyond the last one. */
    bool wrong = (*c == 0xe0 && c[1] < 0xa0) || (*c == 0xed && c[1] > 0x9f) ||
                 (*c == 0xf0 && c[1] < 0x90) || (*c == 0xf4 && c[1] > 0x8f);
    return wrong ? 0 : length;
}

/* Names and values of the system may be any bytes; those that are no text are replaced. */
static void quoted(struct json *json, const char *text)
{
    fputc('"', json->file);
    const unsigned char *c = (const unsigned char *)text;
    while (*c) {
        int length = utf8_length(c);
        if (*c == '"' || *c == '\\')
            fprintf(json->file, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f)
            fprintf(json->file, "\\u%04x", *c);
        else if (length)
            fwrite(c, 1, (size_t)length, json->file);
        else
            fputs("\\ufffd", json->file);
        c += length ? length : 1;
    }
    fputc('"', json->file);
}

static void entry(struct json *json, const char *key)
{
    if (!json->first)
        fputc(',', json->file);
    new_line(json);
    json->first = false;
    if (key) {
        quoted(json, key);
        fputs(": ", json->file);
    }
}

static void begin(struct json *json, char opening, char closing)
{
    fputc(opening, json->file);
    json->closing[json->depth++] = closing;
    json->first = true;
}

struct json *json_open(const char *path)
{
    return remove(path) == 0 || errno == ENOENT ? json_replace(path) : NULL;
}

struct json *json_replace(const char *path)
{
    struct json *json = calloc(1, sizeof *json);
    if (!json)
        return NULL;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    size_t length = strlen(path) + 1, longer = length + sizeof host + 20;
    json->path = malloc(length);
    json->unfinished = malloc(longer);
    if (json->path && json->unfinished) {
        memcpy(json->path, path, length);
        /* Several write it where an MPI does not find its launcher: each process is a rank 0. */
        snprintf(json->unfinished, longer, "%s.%s-%d.tmp", path, host, (int)getpid());
        json->file = fopen(json->unfinished, "w");
    }
    if (!json->file) {
        int reason = errno;
        free(json->path);
        free(json->unfinished);
        free(json);
        errno = reason;
        return NULL;
    }
    json->lines_down_to = LINES_DOWN_TO;
    begin(json, '{', '}');
    return json;
}

static void release(struct json *json)
{
    free(json->path);
    free(json->unfinished);
    free(json);
}

bool json_close(struct json *json)
{
    json_end(json);
    fputc('\n', json->file);
    bool written = !ferror(json->file);
    written = fclose(json->file) == 0 && written;
    json->file = NULL;
    if (!written || rename(json->unfinished, json->path) != 0)
        return false;
    release(json);
    return true;
}

struct json *json_memory(void)
{
    struct json *json = calloc(1, sizeof *json);
    if (!json)
        return NULL;
    json->file = open_memstream(&json->text, &json->size);
    if (!json->file) {
        free(json);
        return NULL;
    }
    begin(json, '{', '}');
    return json;
}

char *json_text(struct json *json)
{
    if (!json)
        return NULL;
    json_end(json);
    bool written = !ferror(json->file);
    written = fclose(json->file) == 0 && written;
    char *text = json->text;
    if (!written) {
        free(text);
        text = NULL;
    }
    release(json);
    return text;
}

void json_discard(struct json *json)
{
    if (!json)
        return;
    if (json->file)
        fclose(json->file);
    if (json->unfinished)
        remove(json->unfinished);
    free(json->text);
    release(json);
}

const char *json_not_finite(const struct json *json)
{
    return json ? json->not_finite : NULL;
}

void json_object(struct json *json, const char *key)
{
    if (!json)
        return;
    entry(json, key);
    begin(json, '{', '}');
}

void json_array(struct json *json, const char *key)
{
    if (!json)
        return;
    entry(json, key);
    begin(json, '[', ']');
}

void json_end(struct json *json)
{
    if (!json)
        return;
    bool empty = json->first;
    char closing = json->closing[--json->depth];
    if (!empty && json->depth < json->lines_down_to)
        fprintf(json->file, "\n%*s", 2 * json->depth, "");
    fputc(closing, json->file);
    json->first = false;
}

void json_string(struct json *json, const char *key, const char *value)
{
    if (!json)
        return;
    entry(json, key);
    quoted(json, value);
}

void json_number(struct json *json, const char *key, double value)
{
    if (!json)
        return;
    entry(json, key);
    if (isfinite(value)) {
        char text[32];
        snprintf(text, sizeof text, "%.9g", value);
        /* The program may have set a locale that writes a comma. */
        char *comma = strchr(text, ',');
        if (comma)
            *comma = '.';
        fputs(text, json->file);
        return;
    }
    fputs("null", json->file);
    if (!json->not_finite)
        json->not_finite = key ? key : "a value";
}

void json_integer(struct json *json, const char *key, long long value)
{
    if (!json)
        return;
    entry(json, key);
    fprintf(json->file, "%lld", value);
}

void json_boolean(struct json *json, const char *key, bool value)
{
    if (!json)
        return;
    entry(json, key);
    fputs(value ? "true" : "false", json->file);
}

void json_raw(struct json *json, const char *key, const char *text)
{
    if (!json)
        return;
    entry(json, key);
    fputs(text, json->file);
}
