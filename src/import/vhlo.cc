#include "import/vhlo.h"

#include <array>
#include <charconv>
#include <unordered_map>

namespace heddle::import {
namespace {

constexpr std::string_view kProducer = "StableHLO_v";
constexpr std::string_view kCast = "builtin.unrealized_conversion_cast";

// "1.20.0"; text that is not a version is older than all versions.
std::array<int, 3> version_of(std::string_view text) {
  std::array<int, 3> version{};
  for (int& part : version) {
    const size_t end = std::min(text.find('.'), text.size());
    std::from_chars(text.data(), text.data() + end, part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return version;
}

class Upgrade {
 public:
  void block(MlirBlock& block, bool in_function) {
    std::vector<MlirOp> kept;
    for (MlirOp& op : block.ops) {
      for (MlirValue& operand : op.operands) operand = same_as(operand);
      // Casts between types of vhlo and of other dialects: the types are the same here.
      if (op.name == kCast && op.operands.size() == op.results.size()) {
        for (size_t i = 0; i < op.results.size(); ++i) same_[op.results[i]] = op.operands[i];
        continue;
      }
      if (op.name.starts_with("vhlo.")) upgrade_vhlo(op, in_function);
      const bool is_function = op.name == "func.func";
      for (MlirRegion& region : op.regions)
        for (MlirBlock& inner : region.blocks) this->block(inner, is_function);
      // In text, a function without a body has no region.
      if (is_function && op.regions.size() == 1 && op.regions[0].blocks.empty()) op.regions.clear();
      kept.push_back(std::move(op));
    }
    block.ops = std::move(kept);
  }

 private:
  MlirValue same_as(MlirValue value) const {
    const auto found = same_.find(value);
    return found == same_.end() ? value : found->second;
  }

  std::unordered_map<MlirValue, MlirValue> same_;
};

}  // namespace

MlirModule parse_vhlo(std::string_view bytes) {
  const std::array<const BytecodeDialect*, 4> dialects = {&builtin_bytecode(), &vhlo_bytecode(),
                                                          &chlo_bytecode(), &sdy_bytecode()};
  try {
    BytecodeFile file = parse_mlir_bytecode(bytes, dialects);
    Upgrade().block(file.module.body, false);
    return std::move(file.module);
  } catch (Failure& failure) {
    std::string producer;
    try {
      producer = parse_bytecode_head(bytes).producer;
    } catch (const Failure&) {
      throw failure;
    }
    std::string_view written = producer;
    if (!written.starts_with(kProducer)) throw;
    written.remove_prefix(kProducer.size());
    if (version_of(written) > version_of(kNewestVhlo))
      failure.error.message +=
          fmt::format("; the file is written by StableHLO {}, and versions 0.9.0 to {} are read",
                      quoted(written), kNewestVhlo);
    throw;
  }
}

}  // namespace heddle::import
