// Package program is what the engine compiles local action lists to: programs of operations,
// the placements that run them, and the stores with the rows, histograms and records that
// they produce.
//
// The packages below omis/place implement Placer. The engine, the extensions and the
// placements import this package; it imports omis and omis/node. Programs and rows are plain
// data; Placer and Store state the rules for goroutines.
package program
