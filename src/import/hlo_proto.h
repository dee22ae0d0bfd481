// HLO protos (openxla/xla: HloModuleProto; HloProto, HloSnapshot and HloUnoptimizedSnapshot around
// one) to hlo::Module. The module is the one that the text of the same XLA module gives.
//
// Ids of instructions and computations must be of what stands before, so there is no cycle. Errors
// are the user's: damaged files, unknown operators, what no field of ours stands for and has a
// meaning (sparse operands). What has none is left out, with a note.
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

// Literals are views of `bytes` where they lie there as they are; `owner` keeps the bytes alive.
// Not verified.
Result<HloFile> read_hlo_proto(std::string_view bytes, const std::shared_ptr<const void>& owner);

// Verified, with names as import_hlo_text gives them.
Result<Imported> import_hlo_proto(std::string_view bytes, const std::shared_ptr<const void>& owner,
                                  const Options& options = {});

// Whether bytes are one of the four messages; they may be damaged further in.
bool is_hlo_proto(std::string_view bytes);

}  // namespace heddle::import
