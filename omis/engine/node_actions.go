package engine

import "mirador/omis"

// The services for nodes (OMIS 8.1.1). There is one node: the machine the engine
// runs on.

func nodeAttach(x *execution, c *call) ([]omis.Value, error) {
	if _, ok := c.object.(*node); !ok {
		return nil, omis.Errorf(omis.TypeMismatch, "%s is no node", c.object.Token())
	}
	x.tool.attachNode()
	return nil, nil
}

func nodeAttach2(x *execution, c *call) ([]omis.Value, error) {
	switch name := c.args[0].Str; name {
	case "", "localhost", x.e.self.name:
	default:
		return nil, omis.Errorf(omis.ParameterError, "there is no node %q: this monitor observes %q alone", name, x.e.self.name)
	}
	x.tool.attachNode()
	return []omis.Value{omis.TokenValue(x.e.self.token)}, nil
}

func (t *Tool) attachNode() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.node = true
}

func nodeDetach(x *execution, _ *call) ([]omis.Value, error) {
	x.e.detachNode(x.tool)
	return nil, nil
}

// nodeName is the bit of node_get_info for the name of the node.
const nodeName = 1

func nodeGetInfo(x *execution, c *call) ([]omis.Value, error) {
	flags, err := c.int(1)
	switch {
	case err != nil:
		return nil, err
	case flags&^nodeName != 0:
		return nil, omis.Errorf(omis.UnsupportedService, "the node reports its name (flags 1) and nothing else: %s", c.service.Support.Reason)
	case flags&nodeName != 0:
		return []omis.Value{omis.String(x.e.self.name)}, nil
	}
	return nil, nil
}
