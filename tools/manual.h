// The manual page of the command, made as completion is: from the commands themselves.
#pragma once

#include <string>
#include <vector>

#include "help_text.h"

namespace heddle::tools {

// In roff, for man(1).
std::string manual_page(const std::vector<DescribedCommand>& commands);

}  // namespace heddle::tools
