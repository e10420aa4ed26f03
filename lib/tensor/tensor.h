/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_TENSOR_TENSOR_H
#define TSHARE_TENSOR_TENSOR_H

struct tshare_tensor;

/* A tensor and its views keep this besides their region: the frame or entry that they are of. */
struct tensor_owner {
	void (*ref)(struct tensor_owner *owner);
	void (*unref)(struct tensor_owner *owner);
};

/* Takes a reference to @owner, for a tensor that has none yet. */
void tensor_set_owner(struct tshare_tensor *tensor, struct tensor_owner *owner);

/* The owner, without a reference, or NULL. */
struct tensor_owner *tensor_get_owner(const struct tshare_tensor *tensor);

/* Gives a view the owner of the tensor that it is @of. */
void tensor_share_owner(struct tshare_tensor *tensor, const struct tshare_tensor *of);

#endif /* TSHARE_TENSOR_TENSOR_H */
