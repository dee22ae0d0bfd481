// hlo::Module as an ONNX model (IR 10, ai.onnx 21), for viewers and, if every instruction has an
// equivalent node, for other runtimes.
//
// An instruction becomes an equivalent node of ai.onnx if there is one (onnx_nodes.h); a fusion or
// call a function of the domain ai.heddle with its computation inside; any other instruction a node
// of ai.heddle with its opcode as type and its attributes as HLO text in `hlo`. Nodes have the
// names of the instructions, and those of the model's own nodes as doc_string. Tuples are
// flattened; outputs are out0, out1, …. Constants are written in full.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "hlo/module.h"

namespace heddle::exports {

// `notes` has the number of nodes that are not plain ai.onnx. Errors (user): a type or size that
// ONNX lacks; more than 2 GiB.
Result<std::string> to_onnx(const hlo::Module& module, std::vector<std::string>* notes);

}  // namespace heddle::exports
