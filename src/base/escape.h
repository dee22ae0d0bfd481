// What a file says must not speak to the terminal.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

// With control characters (of ASCII, and U+0080 ... U+009F) as \xNN, byte by byte. `keep`: those
// that stay, as "\n\t".
std::string escaped(std::string_view text, std::string_view keep = "");

}  // namespace heddle
