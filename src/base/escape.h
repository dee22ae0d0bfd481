// Text from files must not send control sequences to the terminal.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

// Replaces control characters (ASCII, and U+0080 ... U+009F) by \xNN, byte by byte. `keep`:
// characters to leave, such as "\n\t".
std::string escaped(std::string_view text, std::string_view keep = "");

}  // namespace heddle
