// Kernels side by side and one behind the other as phases of one (stages.md §4.10, packing).
#include "stitch/composite.h"

#include <algorithm>

#include "base/check.h"
#include "hlo/in_place.h"
#include "hlo/leaves.h"
#include "stitch/inline_phases.h"
#include "stitch/loop.h"

namespace heddle::stitch {

using hlo::Computation;
using hlo::Instr;
using hlo::Opcode;
using kernel::BufferId;

namespace {

class CompositeStitcher {
 public:
  CompositeStitcher(const Computation& computation, const std::string& name,
                    const target::Target& target, const PartKernel& kernel_of,
                    const std::vector<bool>& streamed)
      : computation_(computation), k_(result_.kernel) {
    k_.name = name;
    k_.target = target.name;
    find_outputs();
    for (const Instr* instr : computation.instrs())
      if (instr->is(Opcode::fusion)) add_part(instr, kernel_of, streamed);
  }

  Stitched run() {
    add_globals();
    result_.in_place.assign(outputs_.size(), -1);
    result_.in_part.assign(outputs_.size(), false);
    result_.may_overwrite.resize(outputs_.size());
    for (const Part& part : parts_) {
      k_.scratch_bytes = std::max(k_.scratch_bytes, part.stitched.kernel.scratch_bytes);
      std::vector<kernel::Phase> phases = inline_phases(part.stitched.kernel, part.globals, &k_);
      for (size_t p = 0; p < phases.size(); ++p)
        for (kernel::Group& group : phases[p].groups)
          k_.phases[part.first + p].groups.push_back(std::move(group));
      count(part);
      find_boxes(part);
    }
    for (const Part& part : parts_) find_in_place(part);
    return std::move(result_);
  }

 private:
  struct Part {
    const Instr* instr;
    Stitched stitched;
    size_t first = 0;  // its first phase
    Buffers globals = {};
    size_t behind() const { return first + stitched.kernel.phases.size(); }
  };

  static tensor::Shape shape_of(const hlo::Origin& value) {
    return hlo::leaves_of(value.maker->shape())[value.leaf];
  }

  static size_t leaf_count(const Instr* part) { return hlo::leaves_of(part->shape()).size(); }

  void find_outputs() {
    const Instr* root = computation_.root();
    if (root->is(Opcode::tuple))
      for (const Instr* output : root->operands()) outputs_.push_back(hlo::origin_of(output));
    else
      outputs_.push_back(hlo::origin_of(root));
  }

  // The number of the output that the value is; -1: it stays inside.
  int output_of(const hlo::Origin& value) const {
    const auto found = std::find(outputs_.begin(), outputs_.end(), value);
    return found == outputs_.end() ? -1 : static_cast<int>(found - outputs_.begin());
  }

  const Part* part_of(const hlo::Origin& value) const {
    const auto found = std::find_if(parts_.begin(), parts_.end(),
                                    [&](const Part& part) { return part.instr == value.maker; });
    return found == parts_.end() ? nullptr : &*found;
  }

  void add_part(const Instr* instr, const PartKernel& kernel_of,
                const std::vector<bool>& streamed) {
    std::vector<bool> past;  // the caches
    for (size_t leaf = 0; leaf < leaf_count(instr); ++leaf) {
      const int output = output_of({instr, leaf});
      past.push_back(output >= 0 && static_cast<size_t>(output) < streamed.size() &&
                     streamed[static_cast<size_t>(output)] && !is_read(instr, leaf));
    }
    Part part{instr, kernel_of(instr, past)};
    for (const Instr* operand : instr->operands())
      if (const Part* earlier = part_of(hlo::origin_of(operand)))
        part.first = std::max(part.first, earlier->behind());
    if (k_.phases.size() < part.behind()) k_.phases.resize(part.behind());
    parts_.push_back(std::move(part));
  }

  // By another part.
  bool is_read(const Instr* maker, size_t leaf) const {
    return std::any_of(
        computation_.instrs().begin(), computation_.instrs().end(), [&](const Instr* reader) {
          return reader->is(Opcode::fusion) &&
                 std::any_of(reader->operands().begin(), reader->operands().end(),
                             [&](const Instr* operand) {
                               return hlo::origin_of(operand) == hlo::Origin{maker, leaf};
                             });
        });
  }

  BufferId global(const std::string& name, const tensor::Shape& shape, kernel::Access access,
                  int64_t aligned_bytes) {
    kernel::Buffer made;
    made.name = name;
    made.type = shape.type();
    made.extents = {shape.elems()};
    made.access = access;
    made.aligned_bytes = aligned_bytes;
    return k_.add_buffer(std::move(made));
  }

  // Inputs, outputs, and workspaces: what goes from part to part, and what parts have of their own.
  void add_globals() {
    Buffers inputs;
    for (const Instr* parameter : computation_.parameters()) {
      inputs.push_back(
          global(fmt::format("in{}", inputs.size()), parameter->shape(), kernel::Access::in, 0));
      result_.min_bytes += parameter->shape().bytes();
    }
    std::vector<std::pair<hlo::Origin, BufferId>> made;
    for (const hlo::Origin& output : outputs_) {
      const Part& part = *part_of(output);
      const size_t place = part.instr->operands().size() + output.leaf;
      const kernel::Buffer& own = part.stitched.kernel.buffers[place];
      made.emplace_back(output, global(fmt::format("out{}", made.size()), shape_of(output),
                                       own.access, own.aligned_bytes));
      result_.min_bytes += shape_of(output).bytes();
    }
    for (Part& part : parts_) {
      for (const Instr* operand : part.instr->operands()) {
        const hlo::Origin value = hlo::origin_of(operand);
        if (value.maker->is(Opcode::parameter)) {
          part.globals.push_back(inputs[static_cast<size_t>(value.maker->parameter_number())]);
          continue;
        }
        const auto found = std::find_if(made.begin(), made.end(),
                                        [&](const auto& one) { return one.first == value; });
        part.globals.push_back(found->second);
      }
      for (size_t leaf = 0; leaf < leaf_count(part.instr); ++leaf) {
        const hlo::Origin value{part.instr, leaf};
        if (const int output = output_of(value); output >= 0) {
          part.globals.push_back(made[static_cast<size_t>(output)].second);
          continue;
        }
        made.emplace_back(value, global("between", shape_of(value), kernel::Access::out, 64));
        result_.workspace_bytes.push_back(shape_of(value).bytes());
        part.globals.push_back(made.back().second);
      }
      const kernel::Kernel& inner = part.stitched.kernel;
      for (int64_t b = std::ssize(part.globals); b < inner.global_count(); ++b)
        part.globals.push_back(k_.add_buffer(inner.buffers[static_cast<size_t>(b)]));
      result_.workspace_bytes.insert(result_.workspace_bytes.end(),
                                     part.stitched.workspace_bytes.begin(),
                                     part.stitched.workspace_bytes.end());
    }
  }

  void count(const Part& part) {
    const Stitched& stitched = part.stitched;
    result_.flops += stitched.flops;
    result_.phase_flops.resize(k_.phases.size());
    result_.phase_bytes.resize(k_.phases.size());
    for (size_t p = 0; p < stitched.kernel.phases.size(); ++p) {
      const bool several = p < stitched.phase_flops.size();
      result_.phase_flops[part.first + p] += several ? stitched.phase_flops[p] : stitched.flops;
      result_.phase_bytes[part.first + p] += several ? stitched.phase_bytes[p] : stitched.min_bytes;
    }
  }

  // The array that a part puts a box into: no other part has anything to do with it
  // (fuse/form_composites.cc).
  void find_boxes(const Part& part) {
    for (size_t leaf = 0; leaf < part.stitched.in_part.size(); ++leaf) {
      if (!part.stitched.in_part[leaf]) continue;
      const int output = output_of({part.instr, leaf});
      const auto operand = static_cast<size_t>(part.stitched.in_place[leaf]);
      const hlo::Origin array = hlo::origin_of(part.instr->operand(operand));
      HEDDLE_CHECK(output >= 0 && array.maker->is(Opcode::parameter),
                   "{} puts a box into what stays inside", part.instr->name());
      result_.in_place[static_cast<size_t>(output)] =
          static_cast<int>(array.maker->parameter_number());
      result_.in_part[static_cast<size_t>(output)] = true;
    }
    if (part.stitched.in_part.empty()) return;
    // The array is not moved, the box alone.
    result_.min_bytes -= all_bytes(part) - hlo::stored_bytes(*part.instr);
    for (const int64_t parameter : hlo::updated_parameters(*part.instr->called()[0]))
      if (parameter >= 0)
        result_.min_bytes -= part.instr->operand(static_cast<size_t>(parameter))->shape().bytes();
  }

  static int64_t all_bytes(const Part& part) {
    int64_t bytes = 0;
    for (const tensor::Shape& leaf : hlo::leaves_of(part.instr->shape())) bytes += leaf.bytes();
    return bytes;
  }

  // Where a part may overwrite its own input, and no other part reads that then or later.
  void find_in_place(const Part& part) {
    for (size_t leaf = 0; leaf < part.stitched.in_place.size(); ++leaf) {
      const int output = output_of({part.instr, leaf});
      if (output < 0 || result_.in_part[static_cast<size_t>(output)]) continue;
      for (int operand : overwritable(part.stitched, leaf)) {
        const hlo::Origin value = hlo::origin_of(part.instr->operand(static_cast<size_t>(operand)));
        if (!value.maker->is(Opcode::parameter) ||
            !is_last_reader(part, static_cast<size_t>(operand), value))
          continue;
        const auto number = static_cast<int>(value.maker->parameter_number());
        result_.may_overwrite[static_cast<size_t>(output)].push_back(number);
        int& chosen = result_.in_place[static_cast<size_t>(output)];
        const bool taken = std::find(result_.in_place.begin(), result_.in_place.end(), number) !=
                           result_.in_place.end();
        if (!taken && chosen < 0) chosen = number;
      }
    }
  }

  bool is_last_reader(const Part& part, size_t operand, const hlo::Origin& value) const {
    for (const Part& other : parts_)
      for (size_t o = 0; o < other.instr->operands().size(); ++o)
        if (hlo::origin_of(other.instr->operand(o)) == value && (&other != &part || o != operand) &&
            other.behind() > part.first)
          return false;
    return true;
  }

  const Computation& computation_;
  Stitched result_;
  kernel::Kernel& k_;
  std::vector<hlo::Origin> outputs_;
  std::vector<Part> parts_;
};

}  // namespace

Stitched stitch_composite(const Computation& computation, const std::string& name,
                          const target::Target& target, const PartKernel& kernel_of,
                          const std::vector<bool>& streamed) {
  return CompositeStitcher(computation, name, target, kernel_of, streamed).run();
}

}  // namespace heddle::stitch
