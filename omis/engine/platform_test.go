package engine_test

import (
	"context"
	"fmt"
	"testing"

	"mirador/omis"
	"mirador/omis/engine/fake"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/omis/service"
)

// platform is an extension that provides the messages of a node without any, and that watches
// the node's threads by a conditional request.
type platform struct {
	messages node.MessagePassing
	machine  string           // name of the machine of p_1, and whether it passes messages
	replies  chan omis.Status // of the conditional request
}

func (*platform) Prefix() string           { return "q" }
func (*platform) Classes() []service.Class { return nil }

func (p *platform) Provide(_ node.Node, c *program.Capabilities) { c.MessagePassing = p.messages }

func (p *platform) Services() []service.Service {
	return []service.Service{{
		Name: "q_watch", Action: p.watch, Kind: service.Manipulation, Need: service.Optional, Role: service.Control,
		Support: service.Support{Level: service.Full}, Doc: "for a test",
	}}
}

func (p *platform) watch(c *service.Call) ([]omis.Value, error) {
	m, err := c.Scope.Machine("p_1")
	if err != nil {
		return nil, err
	}
	p.machine = fmt.Sprint(m.Name(), " ", m.Capabilities().MessagePassing != nil)
	first, err := c.Scope.Request(context.Background(), "thread_reached_addr([p_1],16) : print([$thread])", func(r omis.Reply) { p.replies <- r[0][0].Status })
	if err != nil {
		return nil, err
	}
	_, err = c.Scope.Request(context.Background(), fmt.Sprintf(": csr_enable([%s])", first[0][0].Values[0].Token()), nil)
	return nil, err
}

// TestExtensionServesANode checks that an extension can pass messages for a node, find the
// machine of an object, and receive all replies of a conditional request.
func TestExtensionServesANode(t *testing.T) {
	n := fake.New("here")
	x := &platform{messages: n.Capabilities().MessagePassing, replies: make(chan omis.Status, 9)}
	b := startOver(t, []program.Machine{plain{n}}, []*fake.Node{n}, x)
	p := n.Add(1, nil, 11)
	p.Queues = []node.QueueID{7}
	b.ask(`: proc_attach3([],1,"")`)
	b.want(": message_queue_get_info([p_1],0) q_watch()", "0 OMIS_OK []\n1 OMIS_OK [q_1] 0,[]\n2 OMIS_OK []\n")
	if x.machine != "here true" {
		t.Errorf("the machine of p_1 is %q", x.machine)
	}
	for range 2 {
		p.Reach(11, 0x10, 64)
	}
	for i, want := range []omis.Status{omis.CSREnabled, omis.CSRTriggered, omis.CSRTriggered} {
		if got := <-x.replies; got != want {
			t.Errorf("reply %d is %v, want %v", i, got, want)
		}
	}
}
