package node

import (
	"mirador/omis"
)

// QueueID and MessageID are a platform's identifiers of a message queue and a message.
type (
	QueueID   uint64
	MessageID uint64
)

// Message is a message in a queue, or one that a thread has received.
type Message struct {
	ID     MessageID
	Sender ThreadID // zero if not known
	Size   int64
	Tag    int64 // set by the monitor; 0 if none
}

// ThreadID identifies a thread of a node.
type ThreadID struct {
	Proc omis.ProcID
	TID  int
}

// MessagePassing is the capability of a node whose programs exchange messages through a
// library that the node knows (OMIS 8.1.4). A queue belongs to a thread or to a process.
// Events: EventQueueExtended, EventTaggedMessage.
type MessagePassing interface {
	// QueueOf finds the queue of a thread; if tid is 0, the queue of the process.
	QueueOf(p omis.ProcID, tid int) (q QueueID, ok bool)
	// QueueInfo lists the messages of a queue in the order of reception.
	QueueInfo(QueueID) ([]Message, error)

	// Insert puts a message behind the pos-th message of a queue; 0 means at the
	// beginning, -1 at the end.
	Insert(m MessageID, q QueueID, pos int) error
	Remove(q QueueID, m MessageID) error
	Clear(QueueID) error

	NewMessage() (MessageID, error)
	CopyMessage(from, to MessageID) error
	TagMessage(m MessageID, tag int64) error
	DestroyMessage(MessageID) error
}
