#include "host.h"

#include <stdint.h>
#include <stdio.h>

size_t host_available_memory(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    if (!file)
        return SIZE_MAX;
    char line[256];
    size_t kibibytes, available = SIZE_MAX;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %zu kB", &kibibytes) == 1)
            available = kibibytes * 1024;
    fclose(file);
    return available;
}

size_t host_last_level_cache(void)
{
    size_t largest = 0;
    for (int index = 0; index < 8; index++) {
        char path[64];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
        FILE *file = fopen(path, "r");
        if (!file)
            break;
        size_t size;
        char unit = 'B';
        if (fscanf(file, "%zu%c", &size, &unit) >= 1) {
            size <<= unit == 'K' ? 10 : unit == 'M' ? 20 : 0;
            largest = size > largest ? size : largest;
        }
        fclose(file);
    }
    return largest ? largest : (size_t)64 << 20;
}
