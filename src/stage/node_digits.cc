#include "stage/node_digits.h"

#include <algorithm>

namespace heddle::stage {

using index::Expr;

bool moves_unseen(const Expr& x, int digit, const NodeDigits& nodes) {
  return std::any_of(x.terms().begin(), x.terms().end(), [&](const index::Term& term) {
    return term.atom.kind == index::Atom::Kind::runtime &&
           static_cast<size_t>(term.atom.id) < nodes.size() &&
           nodes[static_cast<size_t>(term.atom.id)][static_cast<size_t>(digit)];
  });
}

NodeDigits node_digits(const Stage& stage) {
  NodeDigits nodes;
  const size_t count = stage.extents().size();
  for (const Node& node : stage.nodes) {
    std::vector<bool> digits(count, false);
    const auto add = [&](const Expr& x) {
      for (size_t d = 0; d < count; ++d)
        if (x.uses(static_cast<int>(d)) || moves_unseen(x, static_cast<int>(d), nodes))
          digits[d] = true;
    };
    for (const int operand : node.operands)
      for (size_t d = 0; d < count; ++d)
        if (nodes[static_cast<size_t>(operand)][d]) digits[d] = true;
    if (node.kind == Node::Kind::load) {
      const Load& load = stage.loads[static_cast<size_t>(node.load)];
      for (const Expr& coordinate : load.coordinates) add(coordinate);
      for (const index::Guard& guard : load.guards) add(guard.value);
    }
    if (node.kind == Node::Kind::index) add(node.index);
    for (const index::Guard& guard : node.guards) add(guard.value);
    nodes.push_back(std::move(digits));
  }
  return nodes;
}

}  // namespace heddle::stage
