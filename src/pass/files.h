// Private to pass: dumps and reproducers on disk.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace heddle::pass {

// Makes the folder where it is missing. The file is there as a whole or not at all. Errors: machine
// (cannot write).
Status write_text(const std::string& directory, const std::string& file, std::string_view text);

// Writes the reproducer of `pass`, "heddle_reproducer_<pass>_<hash><suffix>": the pipeline that
// fails and the error as comments, then `before`, the text in front of it. Returns its path.
// `directory` empty: the system's for temporary files. Errors: machine (cannot write).
Result<std::string> write_reproducer(const std::string& directory, std::string_view before,
                                     std::string_view suffix, std::string_view pass,
                                     std::string_view pipeline, std::string_view error);

}  // namespace heddle::pass
