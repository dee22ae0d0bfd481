#include "net.h"

namespace heddle::models {

namespace {

// DIN's activation: x where a batch norm says so, else a share of it.
Instr* dice(Net& net, Instr* x) {
  Instr* gate = net.b().unary(Opcode::logistic, net.batch_norm(x, 1));
  Instr* share = net.mul(net.weight({x->shape().dim(1)}, 0.3), x);
  return net.add(net.mul(gate, x), net.mul(net.sub(net.number(1), gate), share));
}

}  // namespace

ModulePtr dien(const DienSize& size) {
  Net net("dien");
  const int64_t n = size.batch, t = size.steps, hidden = 2 * size.width;
  Instr* user = net.input(Type::s32, {n}, "user");
  Instr* item = net.input(Type::s32, {n}, "item");
  Instr* category = net.input(Type::s32, {n}, "category");
  Instr* past_items = net.input(Type::s32, {n, t}, "past_items");
  Instr* past_categories = net.input(Type::s32, {n, t}, "past_categories");
  Instr* mask = net.input(Type::f32, {n, t}, "mask");
  Instr* items = net.weight({size.items, size.width}, 1);
  Instr* categories = net.weight({size.categories, size.width}, 1);
  hlo::Builder& b = net.b();
  Instr* target = b.concatenate({b.take(items, item, 0), b.take(categories, category, 0)}, 1);
  Instr* history =
      b.concatenate({b.take(items, past_items, 0), b.take(categories, past_categories, 0)}, 2);
  const Net::Cell extract = net.gru_cell(hidden, hidden), evolve = net.gru_cell(hidden, hidden);
  const Instr* shape_of_state = target;
  Instr* start = b.full(shape_of_state->shape(), 0);
  Instr* state = start;
  std::vector<Instr*> states, columns;
  for (int64_t i = 0; i < t; ++i) {
    state = net.gru_step(extract, b.reshape(net.part(history, 1, i, i + 1), {n, hidden}), state);
    states.push_back(state);
    columns.push_back(b.reshape(state, {n, 1, hidden}));
  }
  Instr* interests = b.concatenate(columns, 1);
  Instr* wanted = b.reshape(net.dense(target, hidden, /*bias=*/false), {n, 1, hidden});
  Instr* scores = b.reduce(Opcode::add, net.mul(interests, wanted), {2});
  scores = net.softmax(net.add(scores, net.mul(net.sub(mask, net.number(1)), net.number(1e9))));
  state = start;
  for (int64_t i = 0; i < t; ++i)
    state =
        net.gru_step(evolve, states[static_cast<size_t>(i)], state, net.part(scores, 1, i, i + 1));
  Instr* total = b.reduce(Opcode::add, net.mul(history, b.reshape(mask, {n, t, 1})), {1});
  Instr* x = b.concatenate({net.b().take(net.weight({size.users, size.width}, 1), user, 0), target,
                            total, net.mul(target, total), state},
                           1);
  x = net.batch_norm(x, 1);
  for (int64_t width : size.hidden) x = dice(net, net.dense(x, width));
  return net.finish(net.softmax(net.dense(x, 2)));
}

ModulePtr dlrm(const DlrmSize& size) {
  Net net("dlrm");
  hlo::Builder& b = net.b();
  const auto tables = static_cast<int64_t>(size.tables.size());
  Instr* x = net.input(Type::f32, {size.batch, size.bottom[0]}, "dense");
  Instr* sparse = net.input(Type::s32, {tables, size.batch}, "sparse");
  for (size_t i = 1; i < size.bottom.size(); ++i) x = net.relu(net.dense(x, size.bottom[i]));
  x = net.relu(net.dense(x, size.width));
  std::vector<Instr*> features{b.reshape(x, {size.batch, 1, size.width})};
  for (int64_t i = 0; i < tables; ++i) {
    Instr* ids = b.reshape(net.part(sparse, 0, i, i + 1), {size.batch});
    Instr* row = net.embedding(ids, size.tables[static_cast<size_t>(i)], size.width);
    features.push_back(b.reshape(row, {size.batch, 1, size.width}));
  }
  Instr* all = b.concatenate(features, 1);
  Instr* dots = b.matmul(all, b.transpose(all, {0, 2, 1}));
  std::vector<Instr*> pairs{x};
  for (int64_t i = 1; i <= tables; ++i) {  // below the diagonal
    Instr* row = b.reshape(net.part(dots, 1, i, i + 1), {size.batch, tables + 1});
    pairs.push_back(net.part(row, 1, 0, i));
  }
  x = b.concatenate(pairs, 1);
  for (int64_t width : size.top) x = net.relu(net.dense(x, width));
  return net.finish(b.unary(Opcode::logistic, net.dense(x, 1)));
}

}  // namespace heddle::models
