#include "algorithms.h"

#include <ctype.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { MOST_NAME = 256, MOST_TEXT = 16384 };

static const char *const told[] = { "_algorithm", "dynamic_rules", "selection_tuning" };

static bool is_of_algorithms(const char *name)
{
    char lower[MOST_NAME];
    size_t length = 0;
    for (; name[length] && length < MOST_NAME - 1; length++)
        lower[length] = (char)tolower((unsigned char)name[length]);
    lower[length] = '\0';
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (strstr(lower, told[i]))
            return true;
    return false;
}

/* Numbers of a choice, and a text: variables of algorithms are of no other type. */
static void value_json(struct json *json, int variable, MPI_Datatype type)
{
    static char text[MOST_TEXT];
    MPI_T_cvar_handle handle;
    int count, size;
    MPI_Type_size(type, &size);
    if (MPI_T_cvar_handle_alloc(variable, NULL, &handle, &count) != MPI_SUCCESS)
        return;
    int64_t wide = 0;
    int32_t number = 0;
    int8_t narrow = 0;
    if (type == MPI_CHAR && count < MOST_TEXT) {
        memset(text, 0, sizeof text);
        if (MPI_T_cvar_read(handle, text) == MPI_SUCCESS)
            json_string(json, "value", text);
    } else if (count == 1 && type != MPI_CHAR && type != MPI_DOUBLE) {
        void *buffer = size == 8 ? (void *)&wide : size == 4 ? (void *)&number : (void *)&narrow;
        if (MPI_T_cvar_read(handle, buffer) == MPI_SUCCESS)
            json_integer(json, "value", wide + number + narrow);
    }
    MPI_T_cvar_handle_free(&handle);
}

static void choices_json(struct json *json, MPI_T_enum choices)
{
    char name[MOST_NAME], number[16];
    int length = MOST_NAME, count, value;
    if (MPI_T_enum_get_info(choices, &count, name, &length) != MPI_SUCCESS)
        return;
    json_object(json, "choices");
    for (int i = 0; i < count; i++) {
        length = MOST_NAME;
        if (MPI_T_enum_get_item(choices, i, &value, name, &length) != MPI_SUCCESS)
            continue;
        snprintf(number, sizeof number, "%d", value);
        json_string(json, number, name);
    }
    json_end(json);
}

static void variable_json(struct json *json, int variable)
{
    static char text[MOST_TEXT];
    char name[MOST_NAME];
    int name_length = MOST_NAME, text_length = MOST_TEXT, verbosity, bound_to, scope;
    MPI_Datatype type;
    MPI_T_enum choices;
    int problem = MPI_T_cvar_get_info(variable, name, &name_length, &verbosity, &type, &choices,
                                      text, &text_length, &bound_to, &scope);
    if (problem != MPI_SUCCESS || bound_to != MPI_T_BIND_NO_OBJECT || !is_of_algorithms(name))
        return;
    json_object(json, NULL);
    json_string(json, "name", name);
    value_json(json, variable, type);
    if (choices != MPI_T_ENUM_NULL)
        choices_json(json, choices);
    json_string(json, "text", text);
    json_end(json);
}

void algorithms_json(struct json *json)
{
    int level, count = 0;
    if (!json)
        return;
    json_array(json, "control_variables");
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &level) == MPI_SUCCESS) {
        MPI_T_cvar_get_num(&count);
        for (int variable = 0; variable < count; variable++)
            variable_json(json, variable);
        MPI_T_finalize();
    }
    json_end(json);
}
