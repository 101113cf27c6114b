package omis

// Keeper is the capability of a Placer to let stores, and the programs that use only
// such stores, outlive the monitor: when it is killed they go on, and the next monitor
// takes them over as they stand. A key names a store among those of one process.
type Keeper interface {
	Placer
	// Keep makes a store that outlives the monitor, or gives back the one of that key
	// that a former monitor has left. Where nothing can outlive the monitor it is an
	// ordinary store, and the verdicts of programs that use it say why.
	//
	// Place takes over a program that a former monitor has left, if it does the same at
	// the same place with the same stores; it may run already.
	Keep(p ProcID, k StoreKind, key string) (Store, error)
	// Recall gives back a store that a former monitor has left, also that of a process
	// that has ended since; nil: there is none.
	Recall(p ProcID, k StoreKind, key string) (Store, error)
	// Settle takes away what former monitors have left and nobody has asked for, and
	// says what that was.
	Settle() ([]Orphan, error)
	// Meet does so in a process that was not known when Settle was called. It costs
	// next to nothing where no monitor has left anything.
	Meet(p ProcID) ([]Orphan, error)
}

// Orphan is something that outlived a monitor, and that no monitor wants any more.
type Orphan struct {
	Proc ProcID
	What string // in words
}
