// A concatenation by parts: a group for every part, which copies it to its place.
#include "schedule/parts.h"

#include "stitch/stitch.h"

namespace heddle::stitch {

using hlo::Instr;
using hlo::Opcode;
using kernel::ExprId;
using kernel::LoopKind;
using kernel::Op;
using kernel::VarId;

namespace {

constexpr int64_t kBlockElems = 2048;  // of one task

class Parts {
 public:
  Parts(const hlo::Computation& computation, const std::string& name, const target::Target& target)
      : root_(*computation.root()), k_(result_.kernel) {
    k_.name = name;
    k_.target = target.name;
    k_.phases.resize(1);
    lanes_ = target.lanes(tensor::Type::f32);
    for (const Instr* parameter : computation.parameters()) {
      inputs_.push_back(
          buffer(fmt::format("in{}", inputs_.size()), parameter->shape(), kernel::Access::in));
      result_.min_bytes += parameter->shape().bytes();
    }
    out_ = buffer("out0", root_.shape(), kernel::Access::out);
    result_.min_bytes += root_.shape().bytes();
    result_.in_place = {-1};
  }

  Stitched run() {
    const int64_t joined = root_.dimensions()[0];
    int64_t rows = 1, inside = 1;
    for (int64_t d = 0; d < root_.shape().rank(); ++d)
      (d < joined ? rows : inside) *= root_.shape().dim(d);
    int64_t at = 0;
    for (const Instr* part : root_.operands()) {
      const int64_t width = part->shape().elems() / rows;
      while (!part->is(Opcode::parameter)) part = part->operand(0);
      const kernel::BufferId from = inputs_[static_cast<size_t>(part->parameter_number())];
      const int64_t blocks = width / kBlockElems, rest = width % kBlockElems;
      if (blocks > 0) copy(from, rows, width, inside, 0, at, blocks, kBlockElems);
      if (rest > 0) copy(from, rows, width, inside, width - rest, at + width - rest, 1, rest);
      at += width;
    }
    return std::move(result_);
  }

 private:
  kernel::BufferId buffer(const std::string& name, const tensor::Shape& shape,
                          kernel::Access access) {
    kernel::Buffer made;
    made.name = name;
    made.type = shape.type();
    made.extents = {shape.elems()};
    made.access = access;
    return k_.add_buffer(made);
  }

  ExprId scaled(VarId var, int64_t factor) {
    return k_.binary(Op::mul, k_.ref(var), k_.constant(factor));
  }

  // `blocks` pieces of `length` elements in every row: from `from_at` of a row of `width` to
  // `to_at` of a row of `inside`.
  void copy(kernel::BufferId from, int64_t rows, int64_t width, int64_t inside, int64_t from_at,
            int64_t to_at, int64_t blocks, int64_t length) {
    const VarId row = k_.add_var("row"), block = k_.add_var("block"), lane = k_.add_var("l");
    auto index = [&](int64_t row_elems, int64_t start) {
      const ExprId here = k_.binary(Op::add, scaled(row, row_elems), k_.constant(start));
      return k_.binary(Op::add, k_.binary(Op::add, here, scaled(block, length)), k_.ref(lane));
    };
    kernel::Stmt store =
        kernel::make_store(out_, {index(inside, to_at)}, k_.load(from, {index(width, from_at)}));
    kernel::Group group;
    group.grid = {{row, k_.constant(rows)}, {block, k_.constant(blocks)}};
    group.body = {kernel::make_loop(LoopKind::vector, lane, k_.constant(length), {store}, lanes_)};
    k_.phases[0].groups.push_back(std::move(group));
  }

  const Instr& root_;
  Stitched result_;
  kernel::Kernel& k_;
  std::vector<kernel::BufferId> inputs_;
  kernel::BufferId out_;
  int lanes_ = 1;
};

}  // namespace

std::optional<Stitched> stitch_parts(const hlo::Computation& computation, const std::string& name,
                                     const target::Target& target) {
  const Instr& root = *computation.root();
  if (!schedule::is_copied_by_parts(root)) return std::nullopt;
  for (const Instr* part : root.operands()) {
    while (part->is(Opcode::reshape) || part->is(Opcode::bitcast)) part = part->operand(0);
    if (!part->is(Opcode::parameter)) return std::nullopt;
  }
  return Parts(computation, name, target).run();
}

}  // namespace heddle::stitch
