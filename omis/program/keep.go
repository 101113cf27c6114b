package program

import (
	"mirador/omis"
)

// Keeper is the capability of a Placer to keep stores, and programs that use only such
// stores, when the monitor is killed: they continue to measure, and the next monitor
// adopts them unchanged. A key identifies a store within its process.
type Keeper interface {
	Placer
	// Keep makes a store that outlives the monitor, or returns the store with that key
	// that an earlier monitor left. If this process cannot keep stores, Keep makes an
	// ordinary one, and the verdicts of the programs that use it give the reason.
	//
	// Place adopts a program that an earlier monitor left, if it does the same at the
	// same address with the same stores; it may be running already.
	Keep(p omis.ProcID, k StoreKind, key string) (Store, error)
	// Recall returns a store that an earlier monitor left, even if its process has ended
	// since; nil if there is none.
	Recall(p omis.ProcID, k StoreKind, key string) (Store, error)
	// Settle removes what earlier monitors left and no caller has asked for, and returns
	// a list of it.
	Settle() ([]Orphan, error)
	// Meet does the same for one process that was unknown when Settle was called. It is
	// cheap if no monitor left anything in the process.
	Meet(p omis.ProcID) ([]Orphan, error)
}

// Orphan describes something that outlived its monitor and that no other monitor can adopt.
type Orphan struct {
	Proc omis.ProcID
	What string // description for users
}
