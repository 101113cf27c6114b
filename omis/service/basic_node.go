package service

import "mirador/omis"

// nodeServices returns the services for nodes (OMIS 8.1.1).
func nodeServices() []Service {
	return []Service{
		{
			Name: "node_attach", Class: omis.ClassNode, Kind: Manipulation, Need: Optional,
			Object: omis.ClassNode, Params: []Param{nodeList()},
			Role: Control, Support: wholly(),
			Doc: "attach to nodes that were attached before, by their tokens",
		},
		{
			Name: "node_attach2", Class: omis.ClassNode, Kind: Manipulation, Need: Optional,
			Params: []Param{StringParam("node_name")}, Result: "token",
			Role: Control, Support: wholly(),
			Doc: "attach to a node by its name and return its token",
		},
		{
			Name: "node_detach", Class: omis.ClassNode, Kind: Manipulation, Need: Optional,
			Object: omis.ClassNode, Params: []Param{nodeList()},
			Role: Control, Support: wholly(),
			Doc: "detach from nodes and from all processes on them",
		},
		{
			Name: "node_get_info", Class: omis.ClassNode, Kind: Information, Need: PartiallyRequired,
			Object: omis.ClassNode, Params: []Param{nodeList(), IntegerParam("flags")},
			Result: "struct { Node_static_info statinfo; Node_dynamic_info dyninfo; }",
			Role:   Read, Needs: NodeInformation, Support: wholly(),
			Doc: "return information on nodes; flags selects it",
		},
	}
}
