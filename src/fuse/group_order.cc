#include "fuse/group_order.h"

namespace heddle::fuse {

void GroupOrder::add_group(Group* group) { group->kernel = kernel(group->members[0]); }

void GroupOrder::has_joined(const Instr* instr, Group* group) {
  group->kernel = order_.unite({group->kernel, kernel(instr)});
}

void GroupOrder::has_copied(const Instr* instr, Group* group) {
  const int original = instrs_.vertex(instr);
  const Vertex& vertex = instrs_.graph.vertices[static_cast<size_t>(original)];
  for (int reader : std::vector<int>(vertex.consumers)) {
    if (order_.kernel(reader) != group->kernel) continue;
    instrs_.graph.remove_edge(original, reader);
    for (int producer : vertex.producers) instrs_.graph.add_edge(producer, reader);
  }
}

void GroupOrder::has_taken(Group* into, const Group& from) {
  into->kernel = order_.unite({into->kernel, from.kernel});
  for (const Instr* copy : into->copies) has_copied(copy, into);
}

bool GroupOrder::makes_cycle(const std::vector<Group*>& row) const {
  std::vector<int> kernels;
  for (const Group* group : row) kernels.push_back(group->kernel);
  return order_.makes_cycle(kernels);
}

}  // namespace heddle::fuse
