// Private to pass: dumps and reproducers on disk.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace heddle::pass {

// Creates the folder if needed. The file is written completely or not at all. Errors: machine
// (cannot write).
Status write_text(const std::string& directory, const std::string& file, std::string_view text);

// Writes the reproducer of `pass`, "heddle_reproducer_<pass>_<hash><suffix>": the failing pipeline
// and the error as comments, then `before`, the text before that pipeline. Returns its path.
// `directory` empty: the system's temporary directory. Errors: machine (cannot write).
Result<std::string> write_reproducer(const std::string& directory, std::string_view before,
                                     std::string_view suffix, std::string_view pass,
                                     std::string_view pipeline, std::string_view error);

}  // namespace heddle::pass
