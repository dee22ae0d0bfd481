// Rows scattered into a table: a task owns some rows of it, looks through all indices and takes
// what is its own. The order of a row's sum is that of the updates, with any number of tasks.
#include "schedule/scatter.h"

#include <cstring>

#include "hlo/combiner.h"
#include "hlo/in_place.h"
#include "stitch/stitcher.h"

namespace heddle::stitch {

using hlo::Instr;
using hlo::Opcode;

namespace {

constexpr int64_t kLeastRows = 64;  // of a task
constexpr int kTasksOfCore = 4;

class Scatters {
 public:
  Scatters(const hlo::Computation& computation, const std::string& name,
           const target::Target& target)
      : k_(result_.kernel),
        lanes_(target.lanes(Type::f32)),
        tasks_(int64_t{kTasksOfCore} * target.cores) {
    k_.name = name;
    k_.target = target.name;
    k_.phases.resize(1);
    for (const Instr* parameter : computation.parameters())
      inputs_.push_back(
          buffer(fmt::format("in{}", inputs_.size()), parameter->shape(), kernel::Access::in));
    const Instr* at = computation.root();
    rows_ = at->shape().dim(0);
    width_ = at->shape().elems() / rows_;
    result_.in_part = {hlo::is_in_place(*at)};
    out_ = buffer("out0", at->shape(),
                  result_.in_part[0] ? kernel::Access::inout : kernel::Access::out);
    for (; at->is(Opcode::scatter); at = at->operand(0)) scatters_.insert(scatters_.begin(), at);
    start_ = at;
    const bool once = start_->is(Opcode::parameter) && start_->users().size() == 1;
    result_.in_place = {once ? static_cast<int>(start_->parameter_number()) : -1};
    if (result_.in_part[0]) result_.min_bytes -= 2 * at->shape().bytes();
  }

  Stitched run() {
    const int64_t wanted = std::max<int64_t>(1, std::min(tasks_, rows_ / kLeastRows));
    const int64_t each = (rows_ + wanted - 1) / wanted, full = rows_ / each;
    add_group(full, 0, each);
    if (const int64_t rest = rows_ % each; rest > 0) add_group(1, full * each, rest);
    return std::move(result_);
  }

 private:
  BufferId buffer(const std::string& name, const tensor::Shape& shape, kernel::Access access) {
    kernel::Buffer made;
    made.name = name;
    made.type = shape.type();
    made.extents = {shape.elems()};
    made.access = access;
    result_.min_bytes += shape.bytes();
    return k_.add_buffer(made);
  }

  BufferId input(const Instr* value) const {
    return inputs_[static_cast<size_t>(value->parameter_number())];
  }

  // `count` tasks of `rows` rows each, from row `first` on.
  void add_group(int64_t count, int64_t first, int64_t rows) {
    kernel::Group group;
    const VarId owner = k_.add_var("owner");
    group.grid = {{owner, k_.constant(count)}};
    const VarId low = k_.add_var("low");
    group.body.push_back(
        make_let(low, k_.binary(Op::add, times(k_.ref(owner), rows), k_.constant(first))));
    if (!result_.in_part[0]) group.body.push_back(begin(low, rows));
    for (const Instr* scatter : scatters_) group.body.push_back(look_through(*scatter, low, rows));
    k_.phases[0].groups.push_back(std::move(group));
  }

  // The owner's rows before anything is scattered into them.
  Stmt begin(VarId low, int64_t rows) {
    const VarId i = k_.add_var("i");
    const ExprId at = k_.binary(Op::add, times(k_.ref(low), width_), k_.ref(i));
    ExprId start;
    if (start_->is(Opcode::parameter)) {
      start = k_.load(input(start_), {at});
    } else {
      uint64_t bits = 0;
      std::memcpy(&bits, start_->operand(0)->literal().data(), sizeof(float));
      start = emit_constant(&k_, Type::f32, bits);
    }
    return make_loop(LoopKind::vector, i, k_.constant(rows * width_),
                     {make_store(out_, {at}, start)}, lanes_);
  }

  Stmt look_through(const Instr& scatter, VarId low, int64_t rows) {
    const BufferId indices = input(scatter.operand(1)), updates = input(scatter.operand(2));
    const VarId update = k_.add_var("update"), row = k_.add_var("row"), i = k_.add_var("i");
    const ExprId to = k_.binary(Op::add, times(k_.ref(row), width_), k_.ref(i));
    ExprId x = k_.load(updates, {k_.binary(Op::add, times(k_.ref(update), width_), k_.ref(i))});
    if (const auto combiner = hlo::combiner_of(*scatter.called()[0]))
      x = emit_op(&k_, *combiner, Type::f32, scatter.called()[0]->root(), {k_.load(out_, {to}), x});
    const ExprId high = k_.binary(Op::add, k_.ref(low), k_.constant(rows));
    const ExprId mine = k_.binary(Op::and_, k_.compare(Op::ge, k_.ref(row), k_.ref(low)),
                                  k_.compare(Op::lt, k_.ref(row), high));
    Block body;
    body.push_back(make_let(row, k_.convert(k_.load(indices, {k_.ref(update)}), Type::s64)));
    body.push_back(make_if(mine, {make_loop(LoopKind::vector, i, k_.constant(width_),
                                            {make_store(out_, {to}, x)}, lanes_)}));
    return make_loop(LoopKind::serial, update, k_.constant(scatter.operand(1)->shape().elems()),
                     std::move(body));
  }

  ExprId times(ExprId x, int64_t factor) { return k_.binary(Op::mul, x, k_.constant(factor)); }

  Stitched result_;
  kernel::Kernel& k_;
  const int lanes_;
  const int64_t tasks_;
  std::vector<BufferId> inputs_;
  BufferId out_;
  std::vector<const Instr*> scatters_;  // in their order
  const Instr* start_ = nullptr;        // what the table is before them
  int64_t rows_ = 0, width_ = 0;
};

}  // namespace

std::optional<Stitched> stitch_scatters(const hlo::Computation& computation,
                                        const std::string& name, const target::Target& target) {
  if (!schedule::is_scatter_kernel(computation)) return std::nullopt;
  return Scatters(computation, name, target).run();
}

}  // namespace heddle::stitch
