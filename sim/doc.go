// Package sim is a shoe and a dealer that do not exist: rounds of Punto Banco
// dealt by the rules from a seed, written as the telegrams that a real Angel Eye
// shoe sends, at its pace or at once, into anything that takes bytes. OpenPair
// makes a line for them that looks like a serial port.
//
// The same Options deal the same cards and send the same bytes, whatever the pace.
package sim
