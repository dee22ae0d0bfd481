// The manual page of the command, made as completion is: from the commands themselves.
#pragma once

#include <string>
#include <vector>

#include "command_line.h"

namespace heddle::tools {

struct DescribedCommand {
  std::string name, summary;
  std::vector<OptionInfo> options;
};

// In roff, for man(1).
std::string manual_page(const std::vector<DescribedCommand>& commands);

}  // namespace heddle::tools
