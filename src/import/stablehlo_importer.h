// The walk over operations of a StableHLO module, and what a handler of one operation sees.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hlo/builder.h"
#include "import/failure.h"
#include "import/fold.h"
#include "import/mlir.h"
#include "import/onnx.h"

namespace heddle::import {

using hlo::Instr;
using hlo::Ints;
using hlo::Opcode;
using tensor::Literal;
using tensor::Shape;

using Instrs = std::vector<Instr*>;

// The values of one block being translated into one computation. An inlined function has a frame
// of its own with the caller's builder; a region has one with a builder of its own.
struct Frame {
  hlo::Builder* builder = nullptr;
  std::unordered_map<MlirValue, Instr*> values;
  // Which process of a grid runs it; null: there is one.
  struct Process* process = nullptr;
};

// A shape depends on the value of this parameter of the entry.
struct NeedsParameter {
  int64_t number;
  std::string why;
  int64_t assumed = 1;  // its value where none is given
};

class StablehloImporter;

// One operation. Handlers read operands and attributes, build, and give the results.
class ShloOp {
 public:
  ShloOp(StablehloImporter* importer, const MlirOp& op, Frame* frame);

  const MlirOp& op;
  StablehloImporter& importer;
  Frame& frame;
  hlo::Builder& b;
  Instrs operands, results;
  std::vector<const MlirType*> operand_types, result_types;

  Instr* operand(size_t i) const;
  size_t count() const { return operands.size(); }
  void give(Instr* result) { results.push_back(result); }
  void give_tuple(Instr* tuple);  // its elements, each a result
  // The declared type of result `i`; its shape, which must be static.
  const MlirType& result_type(size_t i) const;
  Shape result_shape(size_t i) const;
  // Attributes. Those without a default must be there.
  Ints ints(std::string_view name) const;
  Ints ints(std::string_view name, Ints missing) const;
  int64_t integer(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t missing) const;
  bool flag(std::string_view name, bool missing = false) const;
  std::string word(std::string_view name, std::string missing) const;  // of #stablehlo<… WORD>
  std::string text(std::string_view name) const;                       // a string or a symbol
  double number(std::string_view name, double missing) const;
  const MlirAttr& attr(std::string_view name) const;
  const MlirRegion& region(size_t i) const;
  // The operand's integers, known at import. Else the parameter it depends on is asked for;
  // `assumed`: its value where none is given.
  Ints known_ints(size_t i, int64_t assumed = 1) const;
  std::optional<Literal> known(Instr* value) const;
  std::vector<std::string> precision() const;
  void want_operands(size_t least, size_t most) const;
};

using ShloHandler = void (*)(ShloOp& op);
struct ShloEntry {
  std::string_view name;
  ShloHandler handler;
  size_t least = 0, most = SIZE_MAX;  // operands
  // Of quantised operands and results of one scale the stored integers are moved as they are.
  bool moves = false;
};

class StablehloImporter {
 public:
  StablehloImporter(const MlirModule& module, const Options& options,
                    const std::map<int64_t, Literal>& fixed);
  Imported run();
  const MlirOp& entry_function() const;

  const MlirModule& source() const { return source_; }
  const Options& options() const { return options_; }
  hlo::Module& module() { return *module_; }
  const MlirType& type_of(MlirValue value) const {
    return source_.values[static_cast<size_t>(value)];
  }

  // Operations of a block, but its terminator, whose operands it returns.
  Instrs block(const MlirBlock& block, Frame& frame);
  void operation(const MlirOp& op, Frame& frame);
  Instr* value(MlirValue value, const Frame& frame) const;
  // Inlines a function.
  Instrs call(std::string_view name, const Instrs& arguments, Frame& frame);
  const MlirOp& function(std::string_view name) const;
  // A function of scalars (or of whole values, of `parameters`). Values from around it must be
  // constants.
  hlo::Computation* scalar_region(const ShloOp& op, const MlirRegion& region,
                                  const std::vector<Shape>& parameters);
  // A block of one tuple parameter: `arguments` of these shapes and behind them `captured`. The
  // result is a tuple of the block's results and, if `pass_on`, of what was captured; or, if
  // `plain_result`, its one result.
  hlo::Computation* tuple_region(const MlirBlock& block, const std::vector<Shape>& arguments,
                                 const Instrs& captured, const std::vector<MlirValue>& names,
                                 const Frame& around, bool pass_on, bool plain_result);
  // Values that a region uses and does not define.
  std::vector<MlirValue> captures_of(const MlirRegion& region) const;
  // Constants are made anew inside a region: they need not be passed in.
  static bool is_copied(const Instr* instr);
  static Instr* copy_constant(const Instr* instr, hlo::Builder& builder);

  FoldBudget& fold_budget() { return fold_budget_; }
  void assert_that(ShloOp& op, Assertion assertion, Instr* got, Instr* want);
  std::map<std::string, Instrs>& probes() { return probes_; }
  void note(std::string text) { result_.notes.push_back(std::move(text)); }
  int64_t parameter_of(const Instr* value) const;  // an entry's that it depends on; -1: none

 private:
  Shape parameter_shape(const MlirType& type, int64_t number);
  void add_parameters(const MlirOp& main, Frame& frame);
  void finish(Instrs results);
  void add_aliases(const MlirOp& main);
  void translate(const MlirOp& op, Frame& frame);
  void check_result(const ShloOp& op, size_t i) const;
  std::string location_of(const MlirOp& op) const;

  const MlirModule& source_;
  const Options& options_;
  const std::map<int64_t, Literal>& fixed_;  // parameters with known values
  std::unique_ptr<hlo::Module> module_;
  Imported result_;
  FoldBudget fold_budget_;
  std::unordered_map<std::string_view, const MlirOp*> functions_;
  std::unordered_map<const Instr*, int64_t> parameter_numbers_;
  std::vector<std::pair<Assertion, std::pair<Instr*, Instr*>>> asserted_;
  std::map<std::string, Instrs> probes_;  // values by probe's name
  std::unordered_map<std::string_view, std::string_view> locations_;
  int64_t translated_ = 0;
  int depth_ = 0;
};

bool is_terminator(const MlirOp& op);
// Null: the operation is not known.
const ShloEntry* find_shlo(std::string_view name);

// Of quantised values (stablehlo_quantize.cc).
bool has_quantized(const ShloOp& op);
void translate_quantized(ShloOp& op, const ShloEntry& entry);

}  // namespace heddle::import
