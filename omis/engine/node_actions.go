package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mirador/omis"
)

// The services for nodes (OMIS 8.1.1).

func nodeAttach(x *execution, c *call) ([]omis.Value, error) {
	x.tool.attachNode(c.object.(*machine))
	x.conv.forget()
	return nil, nil
}

func nodeAttach2(x *execution, c *call) ([]omis.Value, error) {
	name := c.args[0].Str
	n := x.e.nodeNamed(name)
	if name == "" || name == "localhost" {
		n = x.e.home
	}
	if n == nil {
		return nil, omis.Errorf(omis.ParameterError, "there is no node %q: this monitor observes %s", name, x.e.nodeNames())
	}
	x.tool.attachNode(n)
	x.conv.forget()
	return []omis.Value{omis.TokenValue(n.token)}, nil
}

func (e *Engine) nodeNames() string {
	if len(e.nodes) == 1 {
		return fmt.Sprintf("%q alone", e.home.Name())
	}
	return strings.Join(mapped(e.nodes, func(n *machine) string { return strconv.Quote(n.Name()) }), ", ")
}

func (t *Tool) attachNode(n *machine) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.enterNode(n)
}

// enterNode adds a node to the scope. The caller holds mu.
func (t *Tool) enterNode(n *machine) {
	if !slices.Contains(t.nodes, n) {
		t.nodes = append(t.nodes, n)
		sortObjects(t.nodes)
	}
}

func nodeDetach(x *execution, c *call) ([]omis.Value, error) {
	x.e.detachNode(x.tool, c.object.(*machine))
	x.conv.forget()
	return nil, nil
}

// The bits of node_get_info: one for the name, one for each group of components.
const (
	nodeName      = 1
	nodeGroupsEnd = 1 << 15
)

func nodeGetInfo(_ *execution, c *call) ([]omis.Value, error) {
	n := c.object.(*machine)
	flags, err := c.int(1)
	switch {
	case err != nil:
		return nil, err
	case flags < 0 || flags >= nodeGroupsEnd:
		return nil, omis.Errorf(omis.ParameterError, "node_get_info has no components for flags %#x", uint64(flags&^(nodeGroupsEnd-1)))
	case flags == 0:
		return nil, nil
	}
	informer, err := capability(n, n.Can.NodeInformer, c.service)
	switch {
	case err == nil:
		return informer.NodeInfo(uint32(flags))
	case flags == nodeName:
		return []omis.Value{omis.String(n.Name())}, nil
	}
	return nil, err
}
