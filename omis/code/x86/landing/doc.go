// Package landing knows the code of modules, as their files contain it: its functions,
// and all places that control may reach other than from the preceding instruction.
//
// A jump that displaces several instructions must not displace such places. Control
// reaches them by branches with displacements, by jump tables, and by addresses in data
// or in instructions. A place found by mistake does no harm, but a missing one would, so
// the package examines all bytes, whatever they are. No table contains an address that
// hand-written code computes; such code first takes the address of a place of its own
// function (see Module.TakesOwn).
//
// A Catalog may be used from any goroutine; what it returns never changes. Only
// omis/linux, omis/place/kernel and cli may import it.
package landing
