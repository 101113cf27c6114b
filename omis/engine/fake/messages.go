package fake

import (
	"slices"
	"sync"

	"mirador/omis"
	"mirador/omis/node"
)

// post is the message-passing platform of a node.
type post struct {
	mu       sync.Mutex
	last     node.MessageID
	messages map[node.MessageID]node.Message
	queues   map[node.QueueID][]node.MessageID
}

func (n *Node) QueueOf(id omis.ProcID, tid int) (node.QueueID, bool) {
	p, err := n.byID(id)
	if err != nil {
		return 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if tid == 0 {
		if len(p.Queues) == 0 {
			return 0, false
		}
		return p.Queues[0], true
	}
	t, err := p.thread(tid)
	if err != nil || t.Queue == 0 {
		return 0, false
	}
	return t.Queue, true
}

func (n *Node) QueueInfo(q node.QueueID) ([]node.Message, error) {
	n.post.mu.Lock()
	defer n.post.mu.Unlock()
	var list []node.Message
	for _, id := range n.post.queues[q] {
		list = append(list, n.post.messages[id])
	}
	return list, nil
}

func (n *Node) Insert(m node.MessageID, q node.QueueID, pos int) error {
	n.post.mu.Lock()
	defer n.post.mu.Unlock()
	inside := n.post.queues[q]
	if pos < 0 {
		pos = len(inside)
	}
	if pos > len(inside) {
		return omis.Errorf(omis.ParameterError, "queue %d has no position %d", q, pos)
	}
	if n.post.queues == nil {
		n.post.queues = make(map[node.QueueID][]node.MessageID)
	}
	n.post.queues[q] = slices.Insert(inside, pos, m)
	return nil
}

func (n *Node) Remove(q node.QueueID, m node.MessageID) error {
	n.post.mu.Lock()
	defer n.post.mu.Unlock()
	i := slices.Index(n.post.queues[q], m)
	if i < 0 {
		return omis.Errorf(omis.ParameterError, "message %d is not in queue %d", m, q)
	}
	n.post.queues[q] = slices.Delete(n.post.queues[q], i, i+1)
	return nil
}

func (n *Node) Clear(q node.QueueID) error {
	n.post.mu.Lock()
	defer n.post.mu.Unlock()
	delete(n.post.queues, q)
	return nil
}

func (n *Node) NewMessage() (node.MessageID, error) {
	if err := n.ask("NewMessage"); err != nil {
		return 0, err
	}
	return n.Message(node.Message{}), nil
}

// Message makes a message.
func (n *Node) Message(m node.Message) node.MessageID {
	n.post.mu.Lock()
	defer n.post.mu.Unlock()
	if n.post.messages == nil {
		n.post.messages = make(map[node.MessageID]node.Message)
	}
	n.post.last++
	m.ID = n.post.last
	n.post.messages[m.ID] = m
	return m.ID
}

func (n *Node) CopyMessage(from, to node.MessageID) error {
	n.post.mu.Lock()
	defer n.post.mu.Unlock()
	m := n.post.messages[from]
	m.ID = to
	n.post.messages[to] = m
	return nil
}

func (n *Node) TagMessage(id node.MessageID, tag int64) error {
	n.post.mu.Lock()
	defer n.post.mu.Unlock()
	m := n.post.messages[id]
	m.Tag = tag
	n.post.messages[id] = m
	return nil
}

func (n *Node) DestroyMessage(id node.MessageID) error {
	n.post.mu.Lock()
	defer n.post.mu.Unlock()
	delete(n.post.messages, id)
	return nil
}

// Send adds a message from a thread to the queue of another process, and waits for the actions
// of the event.
func (p *Process) Send(tid int, to *Process, size int64) node.MessageID {
	n := p.node
	id := n.Message(node.Message{Sender: node.ThreadID{Proc: p.ID, TID: tid}, Size: size})
	q := to.Queues[0]
	if err := n.Insert(id, q, -1); err != nil {
		panic(err)
	}
	<-to.Hit(node.EventQueueExtended, node.Hit{Queue: q, Message: n.message(id)})
	return id
}

// Receive removes the first message from the queue of a thread's process, and waits for the
// actions of the event.
func (p *Process) Receive(tid int) {
	n := p.node
	n.post.mu.Lock()
	q := p.Queues[0]
	id := n.post.queues[q][0]
	n.post.queues[q] = n.post.queues[q][1:]
	n.post.mu.Unlock()
	<-p.Hit(node.EventTaggedMessage, node.Hit{TID: tid, Message: n.message(id)})
}

func (n *Node) message(id node.MessageID) node.Message {
	n.post.mu.Lock()
	defer n.post.mu.Unlock()
	return n.post.messages[id]
}
