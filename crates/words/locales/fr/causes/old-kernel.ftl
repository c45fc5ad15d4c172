old-kernel-title = Le noyau est connu pour nuire à un tel tunnel
