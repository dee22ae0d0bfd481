#include "lower/trim_tasks.h"

#include <algorithm>
#include <iterator>

namespace heddle::lower::trimming {

using kernel::ExprId, kernel::GridDim, kernel::LoopKind, kernel::Op, kernel::Stmt, kernel::VarId;

void share_tasks(kernel::Kernel* kernel, const Tasks& tasks, kernel::Group* group,
                 std::vector<Stmt>* prologue) {
  kernel::Kernel& k = *kernel;
  auto let = [&](const char* name, ExprId value, std::vector<Stmt>* lets) {
    const VarId var = k.add_var(name);
    lets->push_back(make_let(var, value));
    return k.ref(var);
  };
  const int64_t count = std::min(tasks.most, tasks.wanted);
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
  const size_t last = tasks.trips.size() - 1;
  std::vector<Stmt> body;
  if (last == 0) {
    body.push_back(make_let(dims->var, k.binary(Op::add, begin, k.ref(number))));
    std::move(group->body.begin(), group->body.end(), std::back_inserter(body));
    body = {make_loop(LoopKind::serial, number, k.binary(Op::sub, end, begin), std::move(body))};
  } else {
    // Lines along the innermost loop, of which the first and the last may be parts.
    const ExprId length =
        let("length", k.binary(Op::max, tasks.trips[last], k.constant(1)), prologue);
    const ExprId after = let("end", end, prologue);
    const ExprId from = let("from", k.binary(Op::floor_div, begin, length), prologue);
    const ExprId to = k.binary(
        Op::floor_div, k.binary(Op::add, after, k.binary(Op::sub, length, k.constant(1))), length);
    const VarId line = k.add_var("line"), element = dims[static_cast<std::ptrdiff_t>(last)].var;
    const ExprId at = let("number", k.binary(Op::add, from, k.ref(line)), &body);
    ExprId rest = at;
    for (size_t i = last; i-- > 1;) {
      const VarId var = dims[static_cast<std::ptrdiff_t>(i)].var;
      body.push_back(make_let(var, k.binary(Op::floor_mod, rest, tasks.trips[i])));
      rest = let("rest", k.binary(Op::floor_div, rest, tasks.trips[i]), &body);
    }
    body.push_back(make_let(dims->var, rest));
    const ExprId before = k.binary(Op::mul, at, length);
    const ExprId first =
        let("first", k.binary(Op::max, k.binary(Op::sub, begin, before), k.constant(0)), &body);
    const ExprId stop = k.binary(Op::min, k.binary(Op::sub, after, before), length);
    std::vector<Stmt> inside{make_let(element, k.binary(Op::add, first, k.ref(number)))};
    std::move(group->body.begin(), group->body.end(), std::back_inserter(inside));
    body.push_back(
        make_loop(LoopKind::serial, number, k.binary(Op::sub, stop, first), std::move(inside)));
    body = {make_loop(LoopKind::serial, line, k.binary(Op::sub, to, from), std::move(body))};
  }
  group->body = std::move(body);
  *dims = GridDim{task, k.constant(count)};
  group->grid.erase(dims + 1, group->grid.end());
}

void join_tasks(kernel::Kernel* kernel, std::vector<kernel::Group>* groups) {
  kernel::Group& all = groups->front();
  const ExprId task = kernel->ref(all.grid[0].var);
  for (size_t i = 1; i < groups->size(); ++i) {
    kernel::Group& group = (*groups)[i];
    all.body.push_back(make_let(group.grid[0].var, task));
    std::move(group.body.begin(), group.body.end(), std::back_inserter(all.body));
  }
  groups->resize(1);
}

}  // namespace heddle::lower::trimming
