#include "compiler/trim_kernels.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "compiler/padding_mask.h"
#include "compiler/passes.h"
#include "compiler/trim_reach.h"
#include "hlo/dim_classes.h"
#include "hlo/leaves.h"
#include "kernel/text.h"
#include "lower/trim.h"

namespace heddle::compiler {
namespace {

using hlo::Instr;
using hlo::Opcode;
using hlo::Symbol;

int64_t elems_of(const kernel::Buffer& buffer) {
  int64_t result = 1;
  for (int64_t extent : buffer.extents) result *= extent;
  return result;
}

// Whether it does not matter how many of its elements are there.
bool is_small(const kernel::Kernel& kernel) {
  constexpr int64_t kFew = 1 << 14;  // some ten microseconds
  return std::all_of(kernel.buffers.begin(), kernel.buffers.end(),
                     [](const kernel::Buffer& buffer) { return elems_of(buffer) <= kFew; });
}

std::vector<const Instr*> all_of(const hlo::Computation& computation) {
  std::vector<const Instr*> result;
  for (const Instr* instr : computation.instrs()) {
    result.push_back(instr);
    if (!instr->is(Opcode::fusion)) continue;
    const std::vector<const Instr*> inside = all_of(*instr->called().at(0));
    result.insert(result.end(), inside.begin(), inside.end());
  }
  return result;
}

// Groups of tasks that became one have no nests of their own.
void run_behind(Pending* pending, const RunPass& run) {
  stitch::Stitched& stitched = pending->stitched;
  const std::vector<kernel::Phase>& phases = stitched.kernel.phases;
  const bool same =
      std::equal(phases.begin(), phases.end(), stitched.nests.begin(), stitched.nests.end(),
                 [](const kernel::Phase& a, const auto& b) { return a.groups.size() == b.size(); });
  if (!same) return;
  lower::Context context;
  context.nests = stitched.nests;
  run(&stitched.kernel, kBehindTrim, context, pending->fusion);
}

class Trimming {
 public:
  explicit Trimming(const hlo::Module& module)
      : module_(module),
        symbols_(hlo::symbols_of(module)),
        classes_(module, hlo::DimClasses::Made::free),
        entry_(module.entry()),
        reaches_(classes_) {
    if (const Status found = classes_.assign(symbols_); !found) {
      why_not_ = found.error().message;
      symbols_.clear();
    }
  }

  bool is_needed() const { return !symbols_.empty(); }
  // Where operators stand between the kernels that do not say what they make of a symbol.
  const std::string& why_not() const { return why_not_; }

  // Symbols of the arrays that a fusion reads and writes.
  std::set<int> symbols_in(const Instr* fusion) const { return classes_.symbols_around(fusion); }

  Instr* extent(int symbol) const {
    return hlo::least_one_of(module_, symbols_[static_cast<size_t>(symbol)]);
  }
  // Whether the extent is made from what the fusion makes.
  bool is_made_from(int symbol, const Instr* fusion) const {
    if (!symbols_[static_cast<size_t>(symbol)].call) return false;
    std::unordered_set<const Instr*> seen;
    std::vector<const Instr*> open{extent(symbol)};
    while (!open.empty()) {
      const Instr* instr = open.back();
      open.pop_back();
      if (instr == fusion) return true;
      if (!seen.insert(instr).second) continue;
      open.insert(open.end(), instr->operands().begin(), instr->operands().end());
    }
    return false;
  }

  // Readers come first, so that it is known what they count on.
  Decision trim(Pending* pending, const RunPass& run) {
    const Instr* fusion = pending->fusion;
    const hlo::DimClasses local(fusion, classes_);
    const WindowReads windows = window_reads(fusion, classes_, symbols_);
    for (size_t leaf = 0; leaf < hlo::leaf_count(fusion->shape()); ++leaf)
      if (!padding_may_be_known(hlo::root_of_leaf(fusion, leaf), fusion, *entry_))
        reaches_.forget(fusion, leaf);
    Request request = make_request(fusion, local, pending->stitched.kernel, windows);
    if (request.kernel.groups.empty()) {
      count_on_inputs(fusion, request, windows, {});
      return request.refused;
    }
    lower::Trim wanted{request.kernel};
    lower::Context context;
    context.trim = &wanted;
    if (request.refused) run(&pending->stitched.kernel, "trim", context, fusion);
    const Decision done = request.refused ? wanted.done : request.refused;
    if (!done) {  // it reads all, and counts on it where it reduces it
      wanted.reads.assign(request.kernel.globals.size(), {});
      for (size_t b = 0; b < wanted.reads.size(); ++b)
        for (size_t k = 0; k < request.kernel.globals[b].size(); ++k) {
          const int group = request.kernel.globals[b][k].group;
          const auto& of = request.kernel.groups[static_cast<size_t>(group)];
          const int symbol = classes_.symbol_of(request.arrays[b].instr, request.dims[b][k],
                                                request.arrays[b].leaf);
          wanted.reads[b].push_back(of.reduced ? of.bound
                                               : reaches_.of_results(fusion, symbol).granule);
        }
    }
    count_on_inputs(fusion, request, windows, wanted.reads);
    if (!done || wanted.left.empty()) return done;
    const auto& [group, why] = *wanted.left.begin();
    const size_t extent = request.kernel.groups[static_cast<size_t>(group)].extent.index();
    return Decision::no("trim-part", "{} does not stop it: {}", fusion->operand(extent)->name(),
                        why.reason());
  }

  // What stands between the kernels hands on what is counted on.
  void pass_on(const Instr* instr) {
    for (const auto& [operand, d] : reduced_by(instr))
      if (const int symbol = classes_.symbol_of(operand, d); symbol >= 0)
        reaches_.count_on(operand, 0, d, {symbols_[static_cast<size_t>(symbol)].bound});
    if (!reaches_.is_counted_on(instr)) return;
    if (instr->is(Opcode::get_tuple_element)) {
      const std::vector<tensor::Shape> leaves = hlo::leaves_of(instr->shape());
      for (size_t leaf = 0; leaf < leaves.size(); ++leaf)
        for (int64_t d = 0; leaves[leaf].is_array() && d < leaves[leaf].rank(); ++d)
          reaches_.count_on(instr->operand(0), hlo::first_leaf_of(instr) + leaf, d,
                            reaches_.of(instr, leaf, d));
      return;
    }
    for (const Instr* operand : instr->operands()) {
      const std::vector<tensor::Shape> leaves = hlo::leaves_of(operand->shape());
      for (size_t leaf = 0; leaf < leaves.size(); ++leaf)
        for (int64_t d = 0; leaves[leaf].is_array() && d < leaves[leaf].rank(); ++d)
          if (const int symbol = classes_.symbol_of(operand, d, leaf); symbol >= 0)
            reaches_.count_on(operand, leaf, d, reaches_.of_results(instr, symbol));
    }
  }

 private:
  struct Array {
    const Instr* instr;
    size_t leaf;
  };
  struct Request {
    lower::TrimRequest kernel;
    Decision refused = Decision::yes();
    std::vector<Array> arrays;               // the globals
    std::vector<std::vector<int64_t>> dims;  // by global and digit
    // Dimensions of a symbol, by global, that are as if they were fixed.
    std::vector<std::pair<size_t, int64_t>> whole;
  };

  // A request on the way: `groups` by local class and its numbers to one, `times` what numbers_of()
  // says.
  struct Making {
    const Instr* fusion;
    const hlo::DimClasses& local;
    const kernel::Kernel& kernel;
    const WindowReads& windows;
    const std::vector<const Instr*>& all;  // of the fusion
    std::unordered_map<int, int64_t> times;
    std::set<int> cut;  // classes whose loops may be those of a longer array that this is part of
    std::set<std::pair<size_t, int64_t>> spread = {};  // dimensions of inputs (is_spread)
    std::map<std::pair<int, int64_t>, int> groups = {};
    Request result = {};
  };

  // `each` numbers of the class to one of the symbol's.
  int group_of(int symbol_number, int number_class, int64_t each, Making* making) const {
    Request& result = making->result;
    const auto [known, added] = making->groups.emplace(
        std::pair(number_class, each), static_cast<int>(result.kernel.groups.size()));
    if (!added) return known->second;
    const Symbol& symbol = symbols_[static_cast<size_t>(symbol_number)];
    lower::TrimGroup group;
    group.times = each;
    group.bound = symbol.bound * each;
    group.least = std::min(symbol.least, symbol.bound) * each;
    group.beyond = numbers_beyond(beyond(making->fusion, making->windows, symbol_number), each);
    for (size_t i = 0; i < making->fusion->operands().size(); ++i)
      if (making->fusion->operand(i) == extent(symbol_number)) group.extent = kernel::BufferId(i);
    if (!group.extent.valid())  // pass_extents was left out
      result.refused =
          Decision::no("trim-extent", "{} is not given {}", making->fusion->name(), symbol.name);
    result.kernel.groups.push_back(group);
    return known->second;
  }

  // The next global: `leaf` of `outer`, inside the fusion that of `inner`. What is counted on of
  // inputs is for others to say.
  void add_array(const Instr* inner, size_t inner_leaf, const Instr* outer, size_t leaf,
                 Making* making) const {
    Request& result = making->result;
    std::vector<lower::TrimDigit>& digits = result.kernel.globals.emplace_back();
    std::vector<int64_t>& dims = result.dims.emplace_back();
    result.arrays.push_back({outer, leaf});
    const tensor::Shape shape = hlo::leaves_of(outer->shape())[leaf];
    const size_t number = result.kernel.globals.size() - 1;
    const bool known = shape.is_array() && number < making->kernel.buffers.size();
    const int64_t elems = known ? elems_of(making->kernel.buffers[number]) : 0;
    // Weights that are packed in words are fewer numbers of more bytes.
    if (!known || elems * tensor::type_bytes(making->kernel.buffers[number].type) !=
                      shape.elems() * tensor::type_bytes(shape.type())) {
      result.refused = Decision::no("trim-form", "a buffer that is not an array of the graph");
      return;
    }
    int64_t stride = 1;
    for (int64_t d = shape.rank(); d-- > 0; stride *= shape.dim(d)) {
      const int s = classes_.symbol_of(outer, d, leaf);
      if (s < 0) continue;
      const int number_class = making->local.of(inner, d, inner_leaf);
      if (making->cut.count(number_class) > 0) {
        result.whole.emplace_back(number, d);
        continue;
      }
      // Memory of one number of the extent, taken apart into numbers of the group, if it can be.
      const int64_t numbers = shape.dim(d) / symbols_[static_cast<size_t>(s)].bound;
      const auto found = making->times.find(number_class);
      const int64_t each = found == making->times.end() ? 1 : found->second;
      const bool is_result = outer == making->fusion;
      digits.push_back(
          {std::max<int64_t>(stride * numbers / each, 1), group_of(s, number_class, each, making),
           is_result ? reaches_.of(outer, leaf, d).granule : 1,
           !is_result &&
               (making->windows.of_input(number, s) || making->spread.contains({number, d}))});
      dims.push_back(d);
    }
    if (!digits.empty() && elems != shape.elems())
      result.refused = Decision::no("trim-form", "an array of other numbers than the graph's");
    if (!digits.empty() && shape.layout() &&
        shape.layout() != shape.without_layout().layout_or_default())
      result.refused = Decision::no("trim-form", "an array with a layout of its own");
  }

  // A number of an array that is made from nothing may stand for one of any group that is as long.
  void find_made(Request* request) const {
    for (size_t b = 0; b < request->arrays.size(); ++b) {
      const auto& [instr, leaf] = request->arrays[b];
      const tensor::Shape shape = hlo::leaves_of(instr->shape())[leaf];
      for (int64_t d = 0; shape.is_array() && d < shape.rank(); ++d)
        if (classes_.is_made(instr, d, leaf) &&
            std::any_of(request->kernel.groups.begin(), request->kernel.groups.end(),
                        [&](const auto& group) { return group.bound == shape.dim(d); }))
          request->kernel.made.insert(b);
    }
  }

  // Whether each number of an input stands for several of those that are computed, as pixels of an
  // image that is enlarged: it says nothing of the loops either.
  bool is_spread(int number_class, size_t input, int64_t extent, int64_t times, int symbol,
                 const Making& making) const {
    const int64_t numbers = extent / symbols_[static_cast<size_t>(symbol)].bound;
    if (input >= making.fusion->operands().size() || numbers >= times || times % numbers != 0)
      return false;
    return !reduces(making.all, making.local, number_class);
  }

  // Classes of which an array has other dimensions inside than what is merged: they are counted by
  // the extent's own numbers, in all arrays.
  void drop_split(const Instr* inner, size_t inner_leaf, const Instr* outer, size_t leaf,
                  size_t number, Making* making) const {
    const tensor::Shape shape = hlo::leaves_of(outer->shape())[leaf];
    for (int64_t d = 0; shape.is_array() && d < shape.rank(); ++d) {
      const int s = classes_.symbol_of(outer, d, leaf);
      const auto found = making->times.find(making->local.of(inner, d, inner_leaf));
      if (s < 0 || found == making->times.end()) continue;
      // A window's input says nothing of the loops.
      if (making->windows.of_input(number, s)) continue;
      // The batch stands right inside of it, or is merged with it.
      int64_t inside = shape.dim(d) / symbols_[static_cast<size_t>(s)].bound;
      for (int64_t e = d + 1; e < shape.rank() && inside < found->second; ++e)
        if (classes_.symbol_of(outer, e, leaf) < 0)
          inside *= shape.dim(e);
        else if (shape.dim(e) != 1)
          break;
      if (inside == found->second) continue;
      if (is_spread(found->first, number, shape.dim(d), found->second, s, *making))
        making->spread.emplace(number, d);
      else
        making->times.erase(found);
    }
  }

  // How far a fusion computes behind the extent of a symbol (Reach::beyond).
  int64_t beyond(const Instr* fusion, const WindowReads& windows, int symbol) const {
    const auto own = windows.own.find(symbol);
    return std::max(reaches_.of_results(fusion, symbol).beyond,
                    own == windows.own.end() ? 0 : own->second);
  }

  Request make_request(const Instr* fusion, const hlo::DimClasses& local,
                       const kernel::Kernel& kernel, const WindowReads& windows) const {
    const hlo::Computation& computation = *fusion->called().at(0);
    const std::vector<const Instr*> all = all_of(computation);
    Making making{fusion,
                  local,
                  kernel,
                  windows,
                  all,
                  numbers_of(all, classes_, symbols_, local),
                  cut_in(all, local)};
    making.cut.merge(shared_with_fixed(all, classes_, local));
    for (size_t i = 0; i < fusion->operands().size(); ++i)
      drop_split(computation.parameters()[i], 0, fusion->operand(i), 0, i, &making);
    for (size_t leaf = 0; leaf < hlo::leaf_count(fusion->shape()); ++leaf)
      drop_split(computation.root(), leaf, fusion, leaf, fusion->operands().size() + leaf, &making);
    for (size_t i = 0; i < fusion->operands().size(); ++i)
      add_array(computation.parameters()[i], 0, fusion->operand(i), 0, &making);
    for (size_t leaf = 0; leaf < hlo::leaf_count(fusion->shape()); ++leaf)
      add_array(computation.root(), leaf, fusion, leaf, &making);
    find_made(&making.result);
    for (const Instr* instr : all) {
      for (const int of_windows : window_classes(instr, classes_, local))
        for (const auto& [of, group] : making.groups)
          if (of.first == of_windows)
            making.result.kernel.groups[static_cast<size_t>(group)].windows = true;
      for (const auto& [operand, d] : reduced_by(instr)) {
        if (making.cut.count(local.of(operand, d)) > 0 && classes_.symbol_of(operand, d) >= 0)
          making.result.refused =
              Decision::no("trim-cut", "{} reduces what is part of a longer array", instr->name());
        for (const auto& [of, group] : making.groups)
          if (of.first == local.of(operand, d))
            making.result.kernel.groups[static_cast<size_t>(group)].reduced = true;
      }
    }
    return std::move(making.result);
  }

  // The inputs whose padding the kernel's reductions read, or that it hands on to where it is
  // counted on: `reads` of them, by digit. What is counted on of the results is counted on of what
  // is read whole; all of it where the kernel may reduce it.
  void count_on_inputs(const Instr* fusion, const Request& request, const WindowReads& windows,
                       const std::vector<std::vector<int64_t>>& reads) {
    const auto count_on_input = [&](size_t number) {
      const Instr* operand = fusion->operand(number);
      for (size_t k = 0; !reads.empty() && k < reads[number].size(); ++k) {
        const int64_t d = request.dims[number][k];
        const int symbol = classes_.symbol_of(operand, d);
        reaches_.count_on(operand, 0, d, {reads[number][k], beyond(fusion, windows, symbol)});
      }
      for (const auto& [global, d] : request.whole) {
        if (global != number) continue;
        const auto symbol = static_cast<size_t>(classes_.symbol_of(operand, d));
        reaches_.count_on(
            operand, 0, d,
            request.refused ? reaches_.of_results(fusion, -1) : Reach{symbols_[symbol].bound});
      }
    };
    const hlo::Computation& computation = *fusion->called().at(0);
    std::unordered_set<const Instr*> seen;
    std::vector<const Instr*> open;
    auto visit = [&](const Instr* instr) {
      if (seen.insert(instr).second) open.push_back(instr);
    };
    for (const WindowReads::Input& input : windows.inputs) {
      const Instr* operand = fusion->operand(input.number);
      for (int64_t d = 0; d < operand->shape().rank(); ++d)
        if (classes_.symbol_of(operand, d) == input.symbol)
          reaches_.count_on(operand, 0, d, {1, input.beyond});
    }
    for (const Instr* read : windows.read) visit(read);
    const std::vector<const Instr*> all = all_of(computation);
    for (const Instr* instr : all)
      for (const auto& [operand, d] : reduced_by(instr)) {
        if (classes_.symbol_of(operand, d) >= 0) visit(operand);
      }
    for (size_t leaf = 0; leaf < hlo::leaf_count(fusion->shape()); ++leaf) {
      if (!reaches_.is_counted_on(fusion, leaf)) continue;
      visit(hlo::root_of_leaf(fusion, leaf));
    }
    std::unordered_map<const hlo::Computation*, const Instr*> callers;
    for (const Instr* instr : all)
      if (instr->is(Opcode::fusion)) callers.emplace(instr->called().at(0), instr);
    while (!open.empty()) {
      const Instr* instr = open.back();
      open.pop_back();
      if (is_padding_mask(instr, fusion, *entry_)) {
        visit(instr->operand(0));
        continue;
      }
      if (instr->is(Opcode::parameter)) {
        const auto number = static_cast<size_t>(instr->parameter_number());
        if (instr->parent() == &computation)
          count_on_input(number);
        else
          visit(callers.at(instr->parent())->operand(number));
        continue;
      }
      if (mixes_padding(instr)) continue;
      if (instr->is(Opcode::fusion)) visit(instr->called().at(0)->root());
      for (const Instr* operand : instr->operands()) visit(operand);
    }
  }

  const hlo::Module& module_;
  std::vector<Symbol> symbols_;
  hlo::DimClasses classes_;
  const hlo::Computation* entry_;
  std::string why_not_;
  Reaches reaches_;
};

}  // namespace

// Fusions of the entry that have a dynamic dimension get the extents of their symbols as
// parameters. Nothing is done where operators stand between that do not say what they make of a
// symbol.
Result<bool> pass_extents(hlo::Module& module, const Context&) {
  if (hlo::symbols_of(module).empty()) return false;
  const Trimming trimming(module);
  if (!trimming.is_needed()) return false;
  bool changed = false;
  hlo::Computation* entry = module.entry();
  // All of them before the first is replaced: classes know the instructions that were there.
  std::vector<std::pair<Instr*, std::set<int>>> wanted;
  for (Instr* instr : entry->instrs())
    if (instr->is(Opcode::fusion)) wanted.emplace_back(instr, trimming.symbols_in(instr));
  for (const auto& [fusion, symbols] : wanted) {
    std::vector<Instr*> operands = fusion->operands();
    hlo::Computation* called = fusion->called().at(0);
    for (int symbol : symbols) {
      if (trimming.is_made_from(symbol, fusion)) continue;
      Instr* extent = trimming.extent(symbol);
      if (std::find(operands.begin(), operands.end(), extent) != operands.end()) continue;
      called->add(Opcode::parameter, extent->shape(), {},
                  hlo::ParameterAttrs{static_cast<int64_t>(operands.size())}, {}, "extent");
      operands.push_back(extent);
    }
    if (operands.size() == fusion->operands().size()) continue;
    Instr* instead = entry->add(Opcode::fusion, fusion->shape(), operands, fusion->attrs(),
                                {called}, fusion->name());
    instead->copy_notes(*fusion);
    entry->replace_all_uses(fusion, instead);
    entry->remove(fusion);
    changed = true;
  }
  entry->sort();
  return changed;
}

std::vector<std::pair<std::string, std::string>> trim_kernels(const hlo::Module& module,
                                                              std::vector<Pending>* all,
                                                              const RunPass& run, Report* report) {
  std::vector<std::pair<std::string, std::string>> changed;
  if (hlo::symbols_of(module).empty()) return changed;
  Trimming trimming(module);
  if (!trimming.why_not().empty() && report)
    report->refusals.push_back({std::string(module.name()), "", "trim-class", trimming.why_not()});
  std::unordered_map<const Instr*, Pending*> pending;
  for (Pending& one : *all) pending.emplace(one.fusion, &one);
  const std::vector<Instr*>& instrs = module.entry()->instrs();
  for (size_t i = instrs.size(); i-- > 0;) {
    const auto found = pending.find(instrs[i]);
    if (found == pending.end() || found->second->refused) {
      if (trimming.is_needed()) trimming.pass_on(instrs[i]);
      continue;
    }
    Pending& one = *found->second;
    const Decision done = trimming.is_needed() ? trimming.trim(&one, run) : Decision::yes();
    run_behind(&one, run);
    if (!done && report)
      report->refusals.push_back({instrs[i]->name(), "",
                                  is_small(one.stitched.kernel) ? "trim-few" : done.code(),
                                  done.reason()});
    std::string text = kernel::to_string(one.stitched.kernel);
    if (text == one.text) continue;
    check(one);
    changed.emplace_back(std::move(one.text), text);
    one.text = std::move(text);
  }
  return changed;
}

}  // namespace heddle::compiler
