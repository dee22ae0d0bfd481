// What a child process wrote to a file in memory.
#pragma once

#include <string>

namespace heddle::tools {

std::string text_of_file(int file);  // from its beginning
// What a crash said: the line of a failed check, else the last one.
std::string last_words(const std::string& text);

}  // namespace heddle::tools
