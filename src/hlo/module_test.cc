#include "hlo/module.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "hlo/builder.h"
#include "hlo/names.h"
#include "hlo/verify.h"

namespace heddle::hlo {
namespace {

const Shape kShape = Shape::array(Type::f32, {4});

class ModuleTest : public testing::Test {
 protected:
  ModuleTest() {
    c->set_root(b.parameter(0, kShape, "x"));
    module.set_entry(c);
  }
  ~ModuleTest() override {
    const Status status = verify(module);
    EXPECT_TRUE(status) << status.error().message;
  }
  std::string order() const {
    std::string names;
    for (const Instr* instr : c->instrs()) names += instr->name() + " ";
    return names;
  }
  Instr* add(Instr* x, Instr* y, std::string_view name) {
    return c->add(Opcode::add, kShape, {x, y}, NoAttrs{}, {}, name);
  }

  Module module{"m"};
  Computation* c = module.add_computation("main");
  Builder b{c};
};

TEST_F(ModuleTest, NamesAreUniqueAndLegal) {
  Instr* x = c->root();
  Instr* first = c->add(Opcode::negate, kShape, {x});
  Instr* second = c->add(Opcode::negate, kShape, {x});
  Instr* third = c->add(Opcode::negate, kShape, {x}, NoAttrs{}, {}, "negate.1");
  EXPECT_EQ(first->name(), "negate");
  EXPECT_EQ(second->name(), "negate.1");
  EXPECT_EQ(third->name(), "negate.2");
  EXPECT_EQ(c->add(Opcode::negate, kShape, {x}, NoAttrs{}, {}, "/a/b c")->name(), "_a_b_c");
  EXPECT_EQ(c->find("negate.2"), third);
  c->rename(third, "f32");
  EXPECT_EQ(third->name(), "f32_");
  EXPECT_EQ(c->find("negate.2"), nullptr);
  c->rename(third, "f32_");
  EXPECT_EQ(third->name(), "f32_");
  EXPECT_LT(first->id(), second->id());
  EXPECT_EQ(legal_name(""), "_");
  EXPECT_EQ(legal_name("0.a-b"), "_0.a-b");
  EXPECT_EQ(module.add_computation("main")->name(), "main.1");
  for (const auto& extra : module.computations())
    if (extra->name() == "main.1") extra->set_root(extra->add(Opcode::tuple, Shape(), {}));
}

TEST_F(ModuleTest, UsersAreListedOnce) {
  Instr* x = c->root();
  Instr* y = add(x, x, "y");
  EXPECT_EQ(x->users(), std::vector<Instr*>{y});
  Instr* z = c->add(Opcode::negate, kShape, {x}, NoAttrs{}, {}, "z");
  c->replace_operand(y, 0, z);
  EXPECT_EQ(x->users().size(), 2u);  // operand 1 of y is left
  c->replace_operand(y, 1, z);
  EXPECT_EQ(x->users(), std::vector<Instr*>{z});
  EXPECT_EQ(z->users(), std::vector<Instr*>{y});
  EXPECT_EQ(order(), "x z y ");  // repaired: z was made after its new user
}

TEST_F(ModuleTest, ReplaceAllUses) {
  Instr* x = c->root();
  Instr* a = c->add(Opcode::negate, kShape, {x}, NoAttrs{}, {}, "a");
  Instr* u1 = add(a, a, "p");
  Instr* u2 = add(a, x, "q");
  c->set_root(a);
  Instr* n = c->add(Opcode::abs, kShape, {x}, NoAttrs{}, {}, "n");
  c->replace_all_uses(a, n);
  EXPECT_TRUE(a->users().empty());
  EXPECT_EQ(n->users().size(), 2u);
  EXPECT_EQ(u1->operands(), (std::vector<Instr*>{n, n}));
  EXPECT_EQ(u2->operands(), (std::vector<Instr*>{n, x}));
  EXPECT_EQ(c->root(), n);
  EXPECT_EQ(order(), "x a n p q ");
  c->replace_all_uses(n, n);
  EXPECT_EQ(n->users().size(), 2u);
}

TEST_F(ModuleTest, ReplaceAllUsesKeepsTheReplacementsOwnUse) {
  Instr* x = c->root();
  Instr* user = add(x, x, "user");
  Instr* copy = c->add(Opcode::copy, kShape, {x}, NoAttrs{}, {}, "copy");
  c->replace_all_uses(x, copy);
  EXPECT_EQ(copy->operands(), std::vector<Instr*>{x});
  EXPECT_EQ(user->operands(), (std::vector<Instr*>{copy, copy}));
  EXPECT_EQ(x->users(), std::vector<Instr*>{copy});
  EXPECT_EQ(order(), "x copy user ");
  EXPECT_EQ(c->root(), copy);
}

TEST_F(ModuleTest, ControlEdges) {
  Instr* x = c->root();
  Instr* a = c->add(Opcode::negate, kShape, {x}, NoAttrs{}, {}, "a");
  Instr* d = c->add(Opcode::abs, kShape, {x}, NoAttrs{}, {}, "d");
  c->add_control_edge(d, a);
  c->add_control_edge(d, a);  // once
  EXPECT_EQ(a->control_predecessors(), std::vector<Instr*>{d});
  EXPECT_EQ(d->control_successors(), std::vector<Instr*>{a});
  EXPECT_EQ(order(), "x d a ");
  Instr* e = c->add(Opcode::sign, kShape, {x}, NoAttrs{}, {}, "e");
  c->replace_all_uses(d, e);
  EXPECT_EQ(a->control_predecessors(), std::vector<Instr*>{e});
  EXPECT_TRUE(d->control_successors().empty());
  EXPECT_EQ(order(), "x d e a ");
  // An edge that would close a cycle is dropped: f depends on a.
  Instr* f = add(a, a, "f");
  c->replace_all_uses(e, f);
  EXPECT_TRUE(a->control_predecessors().empty());
}

TEST_F(ModuleTest, Remove) {
  Instr* x = c->root();
  Instr* a = c->add(Opcode::negate, kShape, {x}, NoAttrs{}, {}, "a");
  Instr* b1 = add(a, x, "b1");
  Instr* before = c->add(Opcode::abs, kShape, {x}, NoAttrs{}, {}, "before");
  c->add_control_edge(before, b1);
  c->remove(b1);
  EXPECT_TRUE(before->control_successors().empty());
  c->remove(a);
  EXPECT_EQ(order(), "x before ");
  EXPECT_EQ(x->users(), std::vector<Instr*>{before});
  EXPECT_EQ(c->find("a"), nullptr);
  EXPECT_DEATH(c->remove(x), "still needed");
}

TEST_F(ModuleTest, RemoveParameterRenumbers) {
  Instr* y = b.parameter(1, kShape, "y");
  Instr* z = b.parameter(2, kShape, "z");
  c->set_root(z);
  c->remove_parameter(1);
  (void)y;
  EXPECT_EQ(z->parameter_number(), 1);
  ASSERT_EQ(c->parameters().size(), 2u);
  EXPECT_EQ(c->parameters()[1], z);
}

TEST_F(ModuleTest, ParametersMayComeInAnyOrder) {
  Instr* two = b.parameter(2, kShape, "two");
  Instr* one = b.parameter(1, kShape, "one");
  EXPECT_EQ(c->parameters()[1], one);
  EXPECT_EQ(c->parameters()[2], two);
}

TEST_F(ModuleTest, RemoveDeadKeepsEffectsAndParameters) {
  b.parameter(1, kShape, "unused");
  Instr* x = c->parameters()[0];
  Instr* dead = c->add(Opcode::negate, kShape, {x}, NoAttrs{}, {}, "dead");
  add(dead, dead, "deader");
  Instr* kept = c->add(Opcode::negate, kShape, {x}, NoAttrs{}, {}, "kept");
  CustomCallAttrs loud{"f", true}, silent{"g"};
  Instr* call = c->add(Opcode::custom_call, kShape, {kept}, loud, {}, "call");
  c->add(Opcode::custom_call, kShape, {kept}, silent, {}, "silent");
  Instr* ordered = c->add(Opcode::abs, kShape, {x}, NoAttrs{}, {}, "ordered");
  c->add_control_edge(ordered, call);
  EXPECT_EQ(c->remove_dead(), 3);
  EXPECT_EQ(order(), "x unused kept ordered call ");
  EXPECT_EQ(c->remove_dead(), 0);
}

TEST_F(ModuleTest, EffectsAreSeenThroughCalls) {
  Computation* inner = module.add_computation("inner");
  Builder bi(inner);
  Instr* p = bi.parameter(0, kShape, "p");
  inner->set_root(bi.make(Opcode::custom_call, {p}, CustomCallAttrs{"f", true}, {}, &kShape));
  Computation* outer = module.add_computation("outer");
  Builder bo(outer);
  outer->set_root(bo.call(inner, {bo.parameter(0, kShape, "p")}));
  Instr* call = b.call(outer, {c->root()});
  EXPECT_TRUE(has_effect(*call));
  EXPECT_EQ(c->remove_dead(), 0);
  inner->root()->mutable_attrs_as<CustomCallAttrs>().has_side_effect = false;
  EXPECT_FALSE(has_effect(*call));
  EXPECT_EQ(c->remove_dead(), 1);
  EXPECT_EQ(module.remove_dead_computations(), 2);
  EXPECT_EQ(module.find("inner"), nullptr);
}

TEST_F(ModuleTest, ReorderAndSort) {
  Instr* x = c->root();
  Instr* a = c->add(Opcode::negate, kShape, {x}, NoAttrs{}, {}, "a");
  Instr* d = c->add(Opcode::abs, kShape, {x}, NoAttrs{}, {}, "d");
  Instr* e = add(a, d, "e");
  c->reorder({x, d, a, e});
  EXPECT_EQ(order(), "x d a e ");
  c->sort();  // stable: nothing to do
  EXPECT_EQ(order(), "x d a e ");
  EXPECT_DEATH(c->reorder({x, e, a, d}), "before");
  EXPECT_DEATH(c->reorder({x, x, a, d}), "not a permutation");
  EXPECT_DEATH(c->reorder({x, a, d}), "3 instructions");
}

TEST_F(ModuleTest, SortAbortsOnACycle) {
  Instr* x = c->root();
  Instr* a = c->add(Opcode::negate, kShape, {x}, NoAttrs{}, {}, "a");
  Instr* d = c->add(Opcode::negate, kShape, {a}, NoAttrs{}, {}, "d");
  c->replace_operand(a, 0, d);
  EXPECT_DEATH(c->sort(), "cycle");
  c->replace_operand(a, 0, x);
}

TEST_F(ModuleTest, PostOrderAndCallers) {
  Builder leaf(module.add_computation("leaf"));
  leaf.computation()->set_root(leaf.parameter(0, kShape, "p"));
  Builder mid(module.add_computation("mid"));
  mid.computation()->set_root(mid.call(leaf.computation(), {mid.parameter(0, kShape, "p")}));
  Builder lone(module.add_computation("lone"));
  lone.computation()->set_root(lone.call(leaf.computation(), {lone.parameter(0, kShape, "p")}));
  Instr* call = b.call(mid.computation(), {c->root()});
  std::string names;
  for (const Computation* computation : module.post_order()) names += computation->name() + " ";
  EXPECT_EQ(names, "leaf mid lone main ");
  EXPECT_DEATH(module.remove_computation(mid.computation()), "still needed");
  c->set_called(call, 0, leaf.computation());
  module.remove_computation(mid.computation());
  module.remove_computation(lone.computation());
  EXPECT_EQ(module.computations().size(), 2u);
}

TEST_F(ModuleTest, CloneIsDeep) {
  Instr* x = c->root();
  Instr* sum = b.reduce(Opcode::add, x, {0});
  for (int i = 0; i < 40; ++i) b.unary(Opcode::negate, x);  // users beyond the indexed length
  c->add_control_edge(c->find("negate"), sum);
  c->remove(c->find("negate.7"));
  sum->annotations().emplace_back("metadata", "{}");
  c->set_root(sum);
  module.input_output_alias = {};
  module.header.emplace_back("k", "v");
  const std::unique_ptr<Module> copy = module.clone();
  EXPECT_TRUE(verify(*copy));
  ASSERT_EQ(copy->entry()->instrs().size(), c->instrs().size());
  for (size_t i = 0; i < c->instrs().size(); ++i) {
    const Instr *from = c->instrs()[i], *to = copy->entry()->instrs()[i];
    EXPECT_NE(from, to);
    EXPECT_EQ(from->name(), to->name());
    EXPECT_EQ(from->id(), to->id());
    EXPECT_EQ(from->attrs(), to->attrs());
    EXPECT_EQ(from->annotations(), to->annotations());
    ASSERT_EQ(from->users().size(), to->users().size());
    for (size_t u = 0; u < from->users().size(); ++u)
      EXPECT_EQ(from->users()[u]->name(), to->users()[u]->name());
  }
  EXPECT_EQ(copy->entry()->root()->called()[0]->module(), copy.get());
  EXPECT_EQ(copy->header, module.header);
  // Names and ids continue as in the original.
  Instr* next = b.unary(Opcode::negate, x);
  Builder other(copy->entry());
  Instr* copied = other.unary(Opcode::negate, copy->entry()->parameters()[0]);
  EXPECT_EQ(next->name(), copied->name());
  EXPECT_EQ(next->id(), copied->id());
}

TEST_F(ModuleTest, CloneComputationTakesItsCallees) {
  b.reduce(Opcode::add, c->root(), {0});
  Module target("t");
  Computation* copy = target.clone_computation(*c, "copied");
  target.set_entry(copy);
  EXPECT_TRUE(verify(target));
  EXPECT_EQ(copy->name(), "copied");
  EXPECT_EQ(target.computations().size(), 2u);
  Computation* again = module.clone_computation(*c);
  EXPECT_EQ(again->name(), "main.1");
  EXPECT_EQ(module.computations().size(), 4u);
}

// Invariants hold after a random walk over the mutations.
TEST_F(ModuleTest, RandomMutationsKeepTheInvariants) {
  uint64_t state = 42;
  auto next = [&](size_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state >> 33) % bound;
  };
  auto reaches = [](Instr* from, const Instr* to) {  // to depends on from
    std::vector<const Instr*> stack{to};
    while (!stack.empty()) {
      const Instr* instr = stack.back();
      stack.pop_back();
      if (instr == from) return true;
      stack.insert(stack.end(), instr->operands().begin(), instr->operands().end());
      stack.insert(stack.end(), instr->control_predecessors().begin(),
                   instr->control_predecessors().end());
    }
    return false;
  };
  for (int step = 0; step < 600; ++step) {
    const std::vector<Instr*> all = c->instrs();
    Instr* a = all[next(all.size())];
    Instr* d = all[next(all.size())];
    switch (all.size() > 12 ? 2 + next(5) : next(7)) {
      case 0:
      case 1:
        add(a, d, "n");
        break;
      case 2:
        if (!reaches(a, d)) c->replace_all_uses(a, d);
        break;
      case 3:
        if (!a->operands().empty() && !reaches(a, d)) c->replace_operand(a, 0, d);
        break;
      case 4:
        if (!reaches(d, a) && a != d) c->add_control_edge(a, d);
        break;
      case 5:
        if (a->users().empty() && a->control_successors().empty() && a != c->root() &&
            !a->is(Opcode::parameter))
          c->remove(a);
        break;
      default:
        c->set_root(a);
        if (next(3) == 0) c->remove_dead();
    }
    const Status status = verify(module);
    ASSERT_TRUE(status) << "step " << step << ": " << status.error().message;
  }
}

// 50,000 instructions: every mutation costs about the same whatever the size. The bound is loose
// (a quadratic implementation takes minutes).
TEST_F(ModuleTest, LargeGraphsAreFast) {
  const auto start = std::chrono::steady_clock::now();
  constexpr int kCount = 50'000;
  Instr* x = c->root();
  std::vector<Instr*> chain{x};
  for (int i = 0; i < kCount; ++i) chain.push_back(add(chain.back(), x, "n"));
  c->set_root(chain.back());
  // Replaces every user of a hub one by one with a later instruction, as a pass does.
  for (int i = 1; i <= kCount; ++i) {
    Instr* fresh = c->add(Opcode::negate, kShape, {chain[i]->operand(0)}, NoAttrs{}, {}, "m");
    c->replace_all_uses(chain[i], fresh);
    if (i % 2) c->remove(chain[i]);
  }
  EXPECT_EQ(c->instrs().size(), 1u + kCount + kCount / 2);
  EXPECT_EQ(c->remove_dead(), kCount / 2);
  EXPECT_EQ(c->instrs().size(), 1u + kCount);
  const auto seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_LT(seconds, 20);
}

TEST_F(ModuleTest, ConcurrentReadersSettleOnce) {
  Instr* x = c->root();
  for (int i = 0; i < 1000; ++i) add(x, x, "n");
  for (int i = 1; i < 500; ++i) c->remove(c->find("n." + std::to_string(i)));
  std::vector<size_t> sizes(4);
  std::vector<std::thread> readers;
  for (size_t& size : sizes) readers.emplace_back([&] { size = c->instrs().size(); });
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(sizes, std::vector<size_t>(4, 502));
}

}  // namespace
}  // namespace heddle::hlo
