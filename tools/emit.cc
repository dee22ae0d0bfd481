#include "emit.h"

#include "export/hlo_proto.h"
#include "export/onnx.h"
#include "export/stablehlo.h"
#include "hlo/module.h"

namespace heddle::tools {

bool is_binary(const std::string& format) { return format == "proto" || format == "onnx"; }

Result<std::string> emit(const hlo::Module& module, const std::string& format,
                         std::vector<std::string>* notes) {
  Result<std::string> made = format == "stablehlo" ? exports::to_stablehlo(module)
                             : format == "onnx"    ? exports::to_onnx(module, notes)
                                                   : exports::to_hlo_proto(module, notes);
  if (!made) return error_in(module.name(), made.error());
  return made;
}

}  // namespace heddle::tools
