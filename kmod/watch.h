/* SPDX-License-Identifier: GPL-2.0-only */
/* Watches: files that are readable when a name may lead to another region. */
#ifndef TSHARE_WATCH_H
#define TSHARE_WATCH_H

struct file;
struct tshare_ns;

struct file *tshare_watch_open(struct tshare_ns *ns, const char *name);

#endif /* TSHARE_WATCH_H */
