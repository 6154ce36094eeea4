// SPDX-License-Identifier: Apache-2.0

package rules

// Thresholds that teescope advise applies to the figures of Gramine and strace, so that it judges as these rules do.
const (
	OCALLShare     = ocallShare     // of the CPU time, for exits: [OCALLBound]
	TrapsPerSecond = trapsPerSecond // exceptions in an enclave: [AEXStorm]
	TickPerCore    = tickPerCore    // timer interrupts a second of a busy thread: [AEXStorm]
	AEXOverTick    = aexOverTick    // asynchronous exits for each of them: [AEXStorm]
	FutexShare     = futexShare     // of the calls, or of their time: [LockContention]
	FutexPerSecond = futexPerSecond // calls of futex: [LockContention]
	EncryptedShare = encryptedShare // of what is moved, for encrypted data: [EncryptionTax]
	SmallBytes     = smallBytes     // mean size of reads and writes: [SmallIO]

	// ChurnStarts are new threads a second, and HandshakeSockets and HandshakeBinds the calls for each of them that show that it
	// makes an encrypted pipe: [ThreadChurn]. It takes HandshakeLow to HandshakeHigh seconds.
	ChurnStarts      = churnStarts
	HandshakeSockets = handshakeSockets
	HandshakeBinds   = handshakeBinds
	HandshakeLow     = handshakeLow
	HandshakeHigh    = handshakeHigh

	// ExitlessFewBusy is the largest number of busy threads, in cores: [Exitless].
	ExitlessFewBusy = exitlessFewBusy
)
