// The modes of fusion.
#pragma once

namespace heddle::fuse {

enum class Mode {
  off,     // one kernel per operator
  xla,     // XLA's published rules, to compare numbers of kernels (xla_producers.cc)
  greedy,  // consumers first, every producer that fits joins its readers
  chains,  // also chains of products as one kernel where that may pay: for tuning to measure
  stitch,  // chains only where that pays (schedule/chain.h), and loops with small steps as one
           // kernel (form_loops.cc); memory-bound operators are covered by FusionStitching's search
           // (explore.h)
};

}  // namespace heddle::fuse
