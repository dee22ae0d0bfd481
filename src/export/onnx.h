// hlo::Module as an ONNX model (IR 10, ai.onnx 21), to be seen in a viewer and, where all of it has
// an equal, to be run by others.
//
// An instruction becomes a node of ai.onnx where that computes the same (onnx_nodes.h); a fusion or
// call a function of the domain ai.heddle with its computation inside; any other instruction a node
// of ai.heddle with its opcode as type and its attributes as HLO text in `hlo`. Nodes have the
// names of the instructions, and those of the model's own nodes as doc_string. Tuples are taken
// apart; outputs are out0, out1, …. Constants stand in the file in full.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "hlo/module.h"

namespace heddle::exports {

// `notes` says how many nodes are no plain ones. Errors (user): a type or size that ONNX has not;
// more than 2 GiB.
Result<std::string> to_onnx(const hlo::Module& module, std::vector<std::string>* notes);

}  // namespace heddle::exports
