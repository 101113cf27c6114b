// Package monitor assembles a monitor: the node of this machine, the placements of
// programs, their costs, the engine and its extensions.
//
// cli, bench and the tests of placements import it. Of this module it imports
// omis/engine, omis/linux, omis/place/calibrate and omis/ext/pa; the caller chooses the
// placements. A Monitor may be used from any goroutine.
package monitor
