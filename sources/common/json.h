/* A small streaming JSON writer.
 *
 * A file is written under another name (FILE.<host>-<pid>.tmp), and json_close renames it to FILE: so
 * FILE exists only when it is complete. A text in memory is a part of a document, to be embedded in
 * another writer's.
 * Every call takes NULL for the writer and then does nothing: ranks without a file need no `if`.
 * `key` is NULL inside an array. JSON cannot hold NaN and infinity: see json_not_finite. */
#ifndef ASSAY_JSON_H
#define ASSAY_JSON_H

#include <stdbool.h>

struct json;

/* Removes an earlier FILE and begins a new one. Returns NULL with errno set when it cannot. */
struct json *json_open(const char *path);
/* The same, but an earlier FILE stays until this one is complete. */
struct json *json_replace(const char *path);
/* Ends the top-level object, flushes and renames. False with errno set when the disk refuses. */
bool json_close(struct json *json);

/* Starts an object in memory, NULL without memory for it; json_text ends it, releases the writer
 * and returns the text, which the caller frees. NULL when memory ran out on the way. */
struct json *json_memory(void);
char *json_text(struct json *json);

/* Releases the writer and what it has written. */
void json_discard(struct json *json);

/* The key of the first number that was NaN or infinite, and was written as null; NULL if all were
 * numbers. A key of NULL (in an array) is told as "a value". */
const char *json_not_finite(const struct json *json);

void json_object(struct json *json, const char *key);
void json_array(struct json *json, const char *key);
void json_end(struct json *json);

void json_string(struct json *json, const char *key, const char *value);
void json_number(struct json *json, const char *key, double value);
void json_integer(struct json *json, const char *key, long long value);
void json_boolean(struct json *json, const char *key, bool value);
/* An entry that is JSON already. */
void json_raw(struct json *json, const char *key, const char *text);

#endif
