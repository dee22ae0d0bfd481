/* jemalloc reads it: memory of weights and the like goes back at once when it is freed. */
const char* malloc_conf = "oversize_threshold:262144";
