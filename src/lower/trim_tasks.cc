#include "lower/trim_tasks.h"

#include <algorithm>
#include <iterator>

namespace heddle::lower::trimming {

using kernel::ExprId, kernel::GridDim, kernel::LoopKind, kernel::Op, kernel::Stmt, kernel::VarId;

void share_tasks(kernel::Kernel* kernel, const Tasks& tasks, kernel::Group* group,
                 std::vector<Stmt>* prologue) {
  constexpr int64_t kMostTasks = 64;  // enough for some each of the workers
  kernel::Kernel& k = *kernel;
  auto let = [&](const char* name, ExprId value, std::vector<Stmt>* lets) {
    const VarId var = k.add_var(name);
    lets->push_back(make_let(var, value));
    return k.ref(var);
  };
  const int64_t count = std::min(tasks.most, kMostTasks);
  ExprId there = tasks.trips[0];
  for (size_t i = 1; i < tasks.trips.size(); ++i) there = k.binary(Op::mul, there, tasks.trips[i]);
  if (tasks.trips.size() > 1) there = let("there", there, prologue);
  const VarId task = k.add_var("task"), number = k.add_var("n");
  auto first_of = [&](ExprId of) {
    const ExprId up = k.binary(Op::add, k.binary(Op::mul, of, there), k.constant(count - 1));
    return k.binary(Op::floor_div, up, k.constant(count));
  };
  const ExprId begin = let("begin", first_of(k.ref(task)), prologue);
  const ExprId end = first_of(k.binary(Op::add, k.ref(task), k.constant(1)));

  const auto dims = group->grid.begin() + static_cast<std::ptrdiff_t>(tasks.first);
  std::vector<Stmt> body;
  ExprId rest = k.binary(Op::add, begin, k.ref(number));
  for (size_t i = tasks.trips.size(); i-- > 1;) {
    const VarId var = dims[static_cast<std::ptrdiff_t>(i)].var;
    rest = let("number", rest, &body);
    body.push_back(make_let(var, k.binary(Op::floor_mod, rest, tasks.trips[i])));
    rest = k.binary(Op::floor_div, rest, tasks.trips[i]);
  }
  body.push_back(make_let(dims->var, rest));
  std::move(group->body.begin(), group->body.end(), std::back_inserter(body));
  group->body.clear();
  group->body.push_back(
      make_loop(LoopKind::serial, number, k.binary(Op::sub, end, begin), std::move(body)));
  *dims = GridDim{task, k.constant(count)};
  group->grid.erase(dims + 1, group->grid.end());
}

}  // namespace heddle::lower::trimming
