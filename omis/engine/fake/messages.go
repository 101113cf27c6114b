package fake

import (
	"slices"
	"sync"

	"mirador/omis"
)

// post is the message-passing platform of a node.
type post struct {
	mu       sync.Mutex
	last     omis.MessageID
	messages map[omis.MessageID]omis.Message
	queues   map[omis.QueueID][]omis.MessageID
}

func (n *Node) QueueOf(id omis.ProcID, tid int) (omis.QueueID, bool) {
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

func (n *Node) QueueInfo(q omis.QueueID) ([]omis.Message, error) {
	n.post.mu.Lock()
	defer n.post.mu.Unlock()
	var list []omis.Message
	for _, id := range n.post.queues[q] {
		list = append(list, n.post.messages[id])
	}
	return list, nil
}

func (n *Node) Insert(m omis.MessageID, q omis.QueueID, pos int) error {
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
		n.post.queues = make(map[omis.QueueID][]omis.MessageID)
	}
	n.post.queues[q] = slices.Insert(inside, pos, m)
	return nil
}

func (n *Node) Remove(q omis.QueueID, m omis.MessageID) error {
	n.post.mu.Lock()
	defer n.post.mu.Unlock()
	i := slices.Index(n.post.queues[q], m)
	if i < 0 {
		return omis.Errorf(omis.ParameterError, "message %d is not in queue %d", m, q)
	}
	n.post.queues[q] = slices.Delete(n.post.queues[q], i, i+1)
	return nil
}

func (n *Node) Clear(q omis.QueueID) error {
	n.post.mu.Lock()
	defer n.post.mu.Unlock()
	delete(n.post.queues, q)
	return nil
}

func (n *Node) NewMessage() (omis.MessageID, error) {
	if err := n.ask("NewMessage"); err != nil {
		return 0, err
	}
	return n.Message(omis.Message{}), nil
}

// Message makes a message.
func (n *Node) Message(m omis.Message) omis.MessageID {
	n.post.mu.Lock()
	defer n.post.mu.Unlock()
	if n.post.messages == nil {
		n.post.messages = make(map[omis.MessageID]omis.Message)
	}
	n.post.last++
	m.ID = n.post.last
	n.post.messages[m.ID] = m
	return m.ID
}

func (n *Node) CopyMessage(from, to omis.MessageID) error {
	n.post.mu.Lock()
	defer n.post.mu.Unlock()
	m := n.post.messages[from]
	m.ID = to
	n.post.messages[to] = m
	return nil
}

func (n *Node) TagMessage(id omis.MessageID, tag int64) error {
	n.post.mu.Lock()
	defer n.post.mu.Unlock()
	m := n.post.messages[id]
	m.Tag = tag
	n.post.messages[id] = m
	return nil
}

func (n *Node) DestroyMessage(id omis.MessageID) error {
	n.post.mu.Lock()
	defer n.post.mu.Unlock()
	delete(n.post.messages, id)
	return nil
}

// Send lets a thread of a process send a message to a process's queue.
func (p *Process) Send(tid int, to *Process, size int64) omis.MessageID {
	n := p.node
	id := n.Message(omis.Message{Sender: omis.ThreadID{Proc: p.ID, TID: tid}, Size: size})
	q := to.Queues[0]
	if err := n.Insert(id, q, -1); err != nil {
		panic(err)
	}
	<-to.Hit(omis.EventQueueExtended, omis.Hit{Queue: q, Message: n.message(id)})
	return id
}

// Receive lets a thread take the first message out of its process's queue.
func (p *Process) Receive(tid int) {
	n := p.node
	n.post.mu.Lock()
	q := p.Queues[0]
	id := n.post.queues[q][0]
	n.post.queues[q] = n.post.queues[q][1:]
	n.post.mu.Unlock()
	<-p.Hit(omis.EventTaggedMessage, omis.Hit{TID: tid, Message: n.message(id)})
}

func (n *Node) message(id omis.MessageID) omis.Message {
	n.post.mu.Lock()
	defer n.post.mu.Unlock()
	return n.post.messages[id]
}
