/* Command line options, from a table.
 *
 * Each program lists its options once; parsing, --help, errors and the JSON "arguments" all come
 * from that list. --help, --version and --json FILE exist in every program and stand in none of
 * the tables. */
#ifndef ASSAY_OPTIONS_H
#define ASSAY_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "json.h"

enum { OPTION_MOST_NUMBERS = 16 };

enum option_kind {
    OPTION_FLAG,    /* bool: no argument */
    OPTION_COUNT,   /* long: a whole number */
    OPTION_SIZE,    /* size_t: bytes, with an optional suffix K, M or G (powers of 1024) */
    OPTION_NUMBER,  /* double */
    OPTION_NUMBERS, /* struct option_numbers: a list separated by commas */
    OPTION_CHOICE,  /* int: index of one of `choices` */
    OPTION_CHOICES, /* unsigned: bit i set for choices[i]; a list separated by commas */
};

struct option_numbers {
    double values[OPTION_MOST_NUMBERS];
    int count;
};

struct option_spec {
    const char *name; /* without the dashes; NULL ends the table */
    enum option_kind kind;
    void *value;                /* holds the default before, the value used afterwards */
    const char *argument;       /* its name in --help, as in --max BYTES; NULL for a flag */
    double low, high;           /* least and greatest value of a count, size or number (each) */
    const char *const *choices; /* NULL-terminated */
    const char *help;           /* the default is appended by --help */
};

/* What the command line asks for besides the values in the table. */
enum option_outcome { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_WRONG };

/* Reads the command line into the table's values. *json_path is --json's argument or NULL. On
 * OPTIONS_WRONG, `problem` (of `length` bytes) holds the sentence. The same on every rank. */
enum option_outcome options_parse(int argc, char **argv, const struct option_spec *table,
                                  const char **json_path, char *problem, size_t length);

/* The options part of --help, on stdout. Call before parsing, while values are the defaults. */
void options_help(const struct option_spec *table);

/* Writes the values used as one JSON object under `key`; dashes in names become underscores. */
void options_json(struct json *json, const char *key, const struct option_spec *table);

/* Writes the values used on one line, as they would be typed. */
void options_print(const struct option_spec *table);

#endif
