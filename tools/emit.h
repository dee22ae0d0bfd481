// heddle opt --emit: a module in the formats of others.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace heddle::hlo {
class Module;
}

namespace heddle::tools {

// Of --emit, but for hlo, which opt prints itself.
inline const std::vector<std::string> kEmitted = {"hlo", "stablehlo", "proto", "onnx"};

bool is_binary(const std::string& format);

// The file's bytes; `notes` gets what the format has no place for. Errors (user): what the format
// cannot say, by name.
Result<std::string> emit(const hlo::Module& module, const std::string& format,
                         std::vector<std::string>* notes);

}  // namespace heddle::tools
