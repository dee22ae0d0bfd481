// The ways of fusing.
#pragma once

namespace heddle::fuse {

enum class Mode {
  off,     // one kernel an operator
  xla,     // XLA's published rules, to count kernels against (xla_producers.cc)
  greedy,  // consumers first, every producer that fits joins its readers
  chains,  // and products in a row become one kernel where it may pay: what tuning measures
  stitch,  // and where it pays (schedule/chain.h), and so do loops with small steps
           // (form_loops.cc); what is bound by memory is covered by FusionStitching's search
           // (explore.h)
};

}  // namespace heddle::fuse
