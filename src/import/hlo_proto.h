// HLO protos (openxla/xla: HloModuleProto; HloProto, HloSnapshot and HloUnoptimizedSnapshot around
// one) to hlo::Module. The result equals that of the text of the same XLA module.
//
// Instructions and computations may only refer to ids that come before them, so there is no cycle.
// Errors are the user's: damaged files, unknown operators, content without an equivalent here that
// has a meaning (sparse operands). Content without a meaning is left out, with a note.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "hlo/module.h"
#include "import/onnx.h"

namespace heddle::import {

struct HloFile {
  std::unique_ptr<hlo::Module> module;
  std::vector<tensor::Literal> arguments;  // of a snapshot
  std::optional<tensor::Literal> result;
  std::vector<std::string> notes;
};

// Literals are views of `bytes` if they are stored there in the right form; `owner` keeps the bytes
// alive. Not verified.
Result<HloFile> read_hlo_proto(std::string_view bytes, const std::shared_ptr<const void>& owner);

// Verified, with the names that import_hlo_text gives.
Result<Imported> import_hlo_proto(std::string_view bytes, const std::shared_ptr<const void>& owner,
                                  const Options& options = {});

// Whether bytes are one of the four messages; they may still be damaged further in.
bool is_hlo_proto(std::string_view bytes);

}  // namespace heddle::import
