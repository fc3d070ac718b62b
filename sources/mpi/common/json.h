/* A small streaming JSON writer.
 *
 * It writes to FILE.tmp; json_close renames it to FILE. So FILE exists only when it is complete.
 * Every call takes NULL for the writer and then does nothing: ranks without a file need no `if`.
 * `key` is NULL inside an array. NaN and infinity, which JSON cannot hold, abort the program. */
#ifndef ASSAY_JSON_H
#define ASSAY_JSON_H

#include <stdbool.h>

struct json;

/* Removes an earlier FILE and opens FILE.tmp. Returns NULL with errno set when it cannot. */
struct json *json_open(const char *path);
/* Ends the top-level object, flushes and renames. False with errno set when the disk refuses. */
bool json_close(struct json *json);
/* Closes and removes FILE.tmp. */
void json_discard(struct json *json);

void json_object(struct json *json, const char *key);
void json_array(struct json *json, const char *key);
void json_end(struct json *json);

void json_string(struct json *json, const char *key, const char *value);
void json_number(struct json *json, const char *key, double value);
void json_integer(struct json *json, const char *key, long long value);
void json_boolean(struct json *json, const char *key, bool value);

#endif
