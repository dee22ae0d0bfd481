// Private to import: the reader that implements hlo_proto.h. hlo_proto.cc has modules and
// snapshots, hlo_proto_instr.cc computations and instructions.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"
#include "import/hlo_proto_reader.h"

namespace heddle::import {

class HloModuleReader {
 public:
  explicit HloModuleReader(std::shared_ptr<const void> owner) : owner_(std::move(owner)) {}
  std::unique_ptr<hlo::Module> module(HloReader& message);

 private:
  using Ints = hlo::Ints;
  struct Scope {
    std::unordered_map<int64_t, hlo::Instr*> instrs;  // by id
  };
  template <typename T>
  static std::vector<T*> found(const Ints& ids, const std::unordered_map<int64_t, T*>& all,
                               const char* what);
  void computation(HloReader& message);
  void instruction(HloReader& message, hlo::Computation* computation, Scope& scope);
  hlo::Attrs attributes(HloReader& message, hlo::Opcode opcode, const tensor::Shape& shape,
                        const std::vector<hlo::Instr*>& operands);
  hlo::ConstantAttrs constant(HloReader& message, const tensor::Shape& shape);
  static void notes(HloReader& message, hlo::Instr* instr);
  void schedule(HloReader& message);
  void header(HloReader& message);

  std::shared_ptr<const void> owner_;
  std::unique_ptr<hlo::Module> module_;
  std::unordered_map<int64_t, hlo::Computation*> computations_;  // by id
  std::unordered_map<const hlo::Computation*, Scope> scopes_;
  int64_t invented_bytes_ = 0;
};

}  // namespace heddle::import
