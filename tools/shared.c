/* Nothing of its own: libheddle.so is the archive of src/api with all it needs. */
typedef int heddle_shared_has_no_code;
